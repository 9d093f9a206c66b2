import type { BuildOptions, Plugin } from 'esbuild';

/**
 * The command uses only KubeConfig and the WebSocket of a port-forward from @kubernetes/client-node. KubeConfig also
 * makes typed clients over undici, reads YAML, connects through proxies, and knows three kinds of auth-provider. The
 * command refuses or replaces all of these (cli/support/kubeconfig.ts). With them it would be twice as large, and each
 * call that connects to a cluster would take half as long again as Node.js itself needs to start.
 */
const UNUSED = [
  'undici',
  'js-yaml',
  'socks',
  'socks-proxy-agent',
  'hpagent',
  'jsonpath-plus',
  'openid-client',
  String.raw`\./gen/index\.js`,
];
const withoutUnused: Plugin = {
  name: 'without-unused',
  setup(builder) {
    const nothing = { path: 'nothing', namespace: 'left-out' };
    builder.onResolve({ filter: new RegExp(`^(?:${UNUSED.join('|')})$`) }, ({ importer }) =>
      importer.includes('/@kubernetes/client-node/') ? nothing : undefined,
    );
    // Commander starts other programs for subcommands that are executables, which the command does not have.
    builder.onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/commander/') ? nothing : undefined,
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
  plugins: [withoutUnused],
  logLevel: 'warning',
} as const satisfies BuildOptions;
