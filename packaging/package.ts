import { chmod, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import packageJson from '../package.json' with { type: 'json' };
import { readArguments, required, runScript } from './arguments.ts';
import { thirdPartyLicenses } from './sbom.ts';

/** The folder that is published on npm, after `npm run build`. The repository's own package.json stays private. */
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
  'client-node-port-forward.cjs',
  'ovs-stand-in.cjs',
  'qemu-stand-in.cjs',
  'api-schemas.json',
];

const MANIFESTS = [
  'base/webhook/mutating-webhook.yaml',
  'base/webhook/opt-in-webhook.yaml',
  'base/webhook/validating-webhook.yaml',
  'base/webhook/required.yaml',
  'base/webhook/deployment.yaml',
  'base/scheduler/config.yaml',
  'base/scheduler/deployment.yaml',
  'base/node-agent/daemonset.yaml',
  'base/node-agent/daemonset-dpu-host.yaml',
];

function publishedManifest(name: string): object {
  const { version, description, license, engines, bin, dependencies } = packageJson;
  return {
    name,
    version,
    description,
    license,
    keywords: ['kubernetes', 'kubevirt', 'kubectl-plugin', 'numa', 'cpu-pinning', 'open-vswitch', 'dpu'],
    engines,
    // `plumbline ovs` and `plumbline qemu` need Linux; all else runs on any system with Node.js.
    bin,
    // A native module cannot be bundled.
    dependencies: { koffi: dependencies.koffi },
    publishConfig: { access: 'public' },
  };
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = readArguments(args, { out: { type: 'string' }, name: { type: 'string', default: NAME } });
  const out = resolve(required(values.out, 'out'));
  const dist = resolve(ROOT, process.env['PLUMBLINE_DIST'] ?? 'dist');
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
  for (const program of Object.values(packageJson.bin)) await chmod(join(out, program), 0o755);
  await writeFile(join(out, 'package.json'), `${JSON.stringify(publishedManifest(values.name), undefined, 2)}\n`);
  console.log(out);
}

await runScript('npm run build:package -- --out DIRECTORY [--name PACKAGE]', main);
