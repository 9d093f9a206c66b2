import { execFileSync } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { inject } from 'postject';
import { readArguments, required, runScript, UsageError } from './arguments.ts';
import { COMMAND } from './command-bundle.ts';
import { architectureOf } from './elf.ts';
import { thirdPartyLicenses } from './third-party-licenses.ts';

/**
 * Builds the command as one executable file: Node.js with the bundle, the web page and koffi's native module. Its
 * architecture is that of the given Node.js. Run `npm run build` first.
 * Source: https://nodejs.org/api/single-executable-applications.html
 */
const ROOT = join(import.meta.dirname, '..');
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/** The executable has no node_modules: koffi's JavaScript loader is left out, and its native module is an asset. */
const nativeFromAsset: Plugin = {
  name: 'native-from-asset',
  setup(builder) {
    builder.onResolve({ filter: /^koffi$/ }, () => ({ path: 'koffi', namespace: 'asset' }));
    builder.onLoad({ filter: /^/, namespace: 'asset' }, () => ({
      contents: "module.exports = require('./load-native.ts').loadNative();",
      resolveDir: import.meta.dirname,
    }));
  },
};

async function readGiven(file: string): Promise<Buffer> {
  return readFile(file).catch((error: Error) => {
    throw new UsageError(`${file} cannot be read: ${error.message}`);
  });
}

/** Checks that this Node.js can become the executable. @throws UsageError */
async function checkNode(file: string): Promise<string> {
  const bytes = await readGiven(file);
  const architecture = architectureOf(file, bytes);
  if (!bytes.includes(FUSE)) {
    throw new UsageError(
      `${file} cannot embed a program; use Node.js from nodejs.org, not a build linked with libnode`,
    );
  }
  if (!bytes.includes(process.version)) {
    throw new UsageError(
      `${file} is not Node.js ${process.version}, which runs this script: both must be the same version`,
    );
  }
  return architecture;
}

/** koffi's native module for glibc. @throws UsageError if npm has not installed it */
async function nativeModule(architecture: string, given: string | undefined): Promise<string> {
  const installed = join(ROOT, `node_modules/@koromix/koffi-linux-${architecture}/linux_${architecture}/koffi.node`);
  const file = given ?? installed;
  const bytes = await readFile(file).catch(() => {
    throw new UsageError(
      `${file} is missing: unpack "npm pack @koromix/koffi-linux-${architecture}", in the version of koffi in ` +
        'package.json, and name its koffi.node with --koffi',
    );
  });
  const found = architectureOf(file, bytes);
  if (found !== architecture)
    throw new UsageError(`${file} is for ${found}, and the Node.js given for ${architecture}`);
  return file;
}

/** The program as one script that requires Node.js' own modules only. */
async function bundle(out: string): Promise<void> {
  await build({
    ...COMMAND,
    absWorkingDir: ROOT,
    entryPoints: [COMMAND.entryPoints.plumbline],
    outfile: out,
    format: 'cjs',
    // Compressors of ws, which works without them.
    external: ['bufferutil', 'utf-8-validate'],
    plugins: [nativeFromAsset],
  });
}

/** The page's files as one asset: their bytes in base64, by name. Node.js 20 cannot list assets. */
async function page(directory: string): Promise<string> {
  const names = (await readdir(directory)).sort();
  const files = names.map(async (name) => [name, (await readFile(join(directory, name))).toString('base64')]);
  return JSON.stringify(Object.fromEntries(await Promise.all(files)));
}

async function licenses(node: string): Promise<string> {
  const own = await readFile(join(ROOT, 'LICENSE'), 'utf8');
  // In the archives from nodejs.org it is next to bin/.
  const nodes = await readFile(join(dirname(node), '../LICENSE'), 'utf8').catch(
    () => 'Node.js: https://github.com/nodejs/node/blob/main/LICENSE\n',
  );
  return [own, nodes, await thirdPartyLicenses(ROOT)].join(`\n${'-'.repeat(80)}\n\n`);
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = readArguments(args, {
    node: { type: 'string', default: process.execPath },
    koffi: { type: 'string' },
    out: { type: 'string' },
  });
  const out = resolve(required(values.out, 'out'));
  const node = resolve(values.node);
  const dist = resolve(ROOT, process.env['PLUMBLINE_DIST'] ?? 'dist');
  const native = await nativeModule(await checkNode(node), values.koffi);
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-executable-'));
  const file = (name: string) => join(directory, name);
  try {
    await bundle(file('main.cjs'));
    await writeFile(file('console'), await page(join(dist, 'console')));
    const config = {
      // The blob contains these names: with their folder, no two builds would be identical.
      main: 'main.cjs',
      output: 'blob',
      disableExperimentalSEAWarning: true,
      // A code cache would depend on this machine's processor.
      useCodeCache: false,
      assets: { 'koffi.node': native, console: file('console') },
    };
    await writeFile(file('config.json'), JSON.stringify(config));
    execFileSync(process.execPath, ['--experimental-sea-config', 'config.json'], { cwd: directory, stdio: 'pipe' });
    await mkdir(dirname(out), { recursive: true });
    await rm(out, { force: true });
    await copyFile(node, out);
    await chmod(out, 0o755);
    await inject(out, 'NODE_SEA_BLOB', await readFile(file('blob')), { sentinelFuse: FUSE });
    await writeFile(`${out}.licenses`, await licenses(node));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  console.log(out);
}

await runScript('npm run build:executable -- --out FILE [--node FILE] [--koffi FILE]', main);
