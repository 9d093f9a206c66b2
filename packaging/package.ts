import { chmod, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { readArguments, required, runScript } from './arguments.ts';
import { thirdPartyLicenses } from './third-party-licenses.ts';

/**
 * Creates the folder that is published on npm. The repository's own package.json stays private: it lists the build's
 * dependencies, nearly all of which are bundled. Run `npm run build` first.
 */
const ROOT = join(import.meta.dirname, '..');

/** On npm, `plumbline` is another project. A publisher with another scope passes --name. */
const NAME = '@plumbline-dev/plumbline';

/** Files and folders of dist/. The daemons and stand-ins are for `plumbline demo`, which starts them as processes. */
const BUNDLES = [
  'plumbline.mjs',
  'cli',
  'console',
  'webhook.cjs',
  'scheduler-plugin.cjs',
  'node-agent.cjs',
  'kubeconfig.cjs',
  'device-plugin-worker.cjs',
  'ovs-stand-in.cjs',
  'qemu-stand-in.cjs',
  'api-schemas.json',
];

/** The manifests that the demo reads. */
const MANIFESTS = [
  'base/webhook/mutating-webhook.yaml',
  'base/webhook/validating-webhook.yaml',
  'base/scheduler/config.yaml',
];

/** Dependencies that are not bundled: a native module cannot be. */
const NOT_BUNDLED = ['koffi'];

interface Manifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

function publishedManifest(own: Manifest, name: string): object {
  const { version, description, license, engines, bin, dependencies } = own;
  return {
    name,
    version,
    description,
    license,
    keywords: ['kubernetes', 'kubevirt', 'kubectl-plugin', 'numa', 'cpu-pinning', 'open-vswitch', 'dpu'],
    engines,
    // `plumbline ovs` and `plumbline qemu` need Linux; all else runs on any system with Node.js.
    bin,
    dependencies: Object.fromEntries(NOT_BUNDLED.map((one) => [one, dependencies[one]])),
    publishConfig: { access: 'public' },
  };
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = readArguments(args, { out: { type: 'string' }, name: { type: 'string', default: NAME } });
  const out = resolve(required(values.out, 'out'));
  const dist = resolve(ROOT, process.env['PLUMBLINE_DIST'] ?? 'dist');
  const own = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  const copy = async (from: string, path: string) => {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await cp(from, join(out, path), { recursive: true });
  };
  await rm(out, { recursive: true, force: true });
  for (const file of BUNDLES) await copy(join(dist, file), `dist/${file}`);
  for (const file of MANIFESTS) await copy(join(ROOT, 'manifests', file), `manifests/${file}`);
  await copy(join(ROOT, 'LICENSE'), 'LICENSE');
  await copy(join(import.meta.dirname, 'npm-readme.md'), 'README.md');
  await writeFile(join(out, 'THIRD-PARTY-LICENSES'), await thirdPartyLicenses(ROOT));
  for (const program of Object.values(own.bin)) await chmod(join(out, program), 0o755);
  await writeFile(join(out, 'package.json'), `${JSON.stringify(publishedManifest(own, values.name), undefined, 2)}\n`);
  console.log(out);
}

await runScript('npm run build:package -- --out DIRECTORY [--name PACKAGE]', main);
