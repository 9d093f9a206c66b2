import { execFileSync } from 'node:child_process';
import { cp, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { buildConsole } from './build-console.ts';

/**
 * Bundles each daemon and the command line tool into one file each in dist/, and the console's page into dist/console.
 * koffi stays outside, because it is a native module. The CNI plugin is built as well if its compiler is installed.
 */
const ENTRIES = {
  webhook: 'webhook/main.ts',
  'scheduler-plugin': 'scheduler-plugin/main.ts',
  'node-agent': 'node-agent/main.ts',
  console: 'console/server/main.ts',
  'device-plugin-worker': 'node-agent/device-plugin/worker.ts',
  plumbline: 'cli/main.ts',
  'ovs-stand-in': 'sandbox/open-vswitch/stand-in.ts',
  'qemu-stand-in': 'sandbox/qemu/stand-in.ts',
};

/**
 * The command uses only KubeConfig and the WebSocket of a port-forward from @kubernetes/client-node. KubeConfig can
 * also make typed clients over undici. With the models of the whole API they are half of the command and make it start
 * a third slower.
 */
const withoutTypedClients: Plugin = {
  name: 'without-typed-clients',
  setup(builder) {
    const nothing = { path: 'typed-clients', namespace: 'left-out' };
    builder.onResolve({ filter: /^undici$|^\.\/gen\/index\.js$/ }, ({ importer }) =>
      importer.includes('/@kubernetes/client-node/') ? nothing : undefined,
    );
    builder.onLoad({ filter: /^/, namespace: nothing.namespace }, () => ({ contents: 'module.exports = {};' }));
  },
};

/** The output folder of the bundles. Callers that run them from a folder other than dist/ use the same name. */
const OUT = resolve(process.env['PLUMBLINE_DIST'] ?? 'dist');

await rm(OUT, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: ENTRIES,
  outdir: OUT,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  external: ['koffi'],
  // Without comments a bundle is plain ASCII, which Node.js stores as one byte per character instead of two: 3 to 5 MB
  // less memory. Names and short lines stay, so that stack traces are readable.
  minifySyntax: true,
  minifyWhitespace: true,
  lineLimit: 160,
  legalComments: 'none',
  plugins: [withoutTypedClients],
  metafile: true,
  logLevel: 'warning',
});
// A separate file, because only the demo reads it.
await cp('sandbox/api-server/gen/components.json', join(OUT, 'api-schemas.json'));
const outputs = { ...metafile.outputs, ...(await buildConsole(join(OUT, 'console'))) };
// The source files of each bundle, for the images' context, licences and bills of materials.
const inputs = Object.entries(outputs).map(([file, output]) => [
  relative(OUT, file),
  Object.keys(output.inputs).sort(),
]);
await writeFile(join(OUT, 'inputs.json'), JSON.stringify(Object.fromEntries(inputs), undefined, 1));

try {
  execFileSync('musl-gcc', ['-dumpversion'], { stdio: 'ignore' });
  execFileSync('make', ['-s', '-C', 'native/cni', `OUT=${OUT}`], { stdio: 'inherit' });
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  console.warn('plumbline-gate is not built: musl-gcc or make is missing (npm run test:setup)');
}
