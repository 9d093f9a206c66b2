import type { BuildOptions, Plugin } from 'esbuild';

/**
 * The command uses only KubeConfig and the WebSocket of a port-forward from @kubernetes/client-node. KubeConfig can
 * also make typed clients over undici. With the models of the whole API they are half of the command.
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

/** Options of esbuild for the command, whatever the form of its output. */
export const COMMAND = {
  entryPoints: { plumbline: 'cli/main.ts' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
  plugins: [withoutTypedClients],
  logLevel: 'warning',
} as const satisfies BuildOptions;
