import { rm } from 'node:fs/promises';
import { build, type Plugin } from 'esbuild';

/**
 * Bundles each daemon and the command line tool to one file in dist/. koffi stays outside: it is a native module.
 */
const ENTRIES = { webhook: 'webhook/main.ts' };

/**
 * The Kubernetes client does not declare that importing it has no side effects, so its models of the whole API (which
 * Plumbline does not use) would be in every bundle and in every daemon's memory.
 */
const dropUnusedModels: Plugin = {
  name: 'drop-unused-models',
  setup(builder) {
    builder.onResolve({ filter: /^\.|^@kubernetes\/client-node$/ }, async (args) => {
      if (args.pluginData === 'resolved') return undefined;
      if (!args.path.startsWith('@') && !args.importer.includes('@kubernetes/client-node')) return undefined;
      const { path, resolveDir, importer, kind } = args;
      const found = await builder.resolve(path, { resolveDir, importer, kind, pluginData: 'resolved' });
      return { ...found, sideEffects: false };
    });
  },
};

await rm('/tmp/distw', { recursive: true, force: true });
await build({
  entryPoints: ENTRIES,
  outdir: '/tmp/distw',
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  external: ['koffi'],
  minifySyntax: true,
  keepNames: true,
  legalComments: 'none',
  plugins: [dropUnusedModels],
  logLevel: 'warning',
});
