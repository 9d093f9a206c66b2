import type { Plugin } from 'esbuild';

/** Modules that a package imports for features that no program here uses. */
interface LeftOut {
  /** The importing package. */
  readonly from: string;
  /** Import specifiers. */
  readonly modules: readonly string[];
}

/** What packages import in every program. */
const EVERYWHERE: readonly LeftOut[] = [
  // For subcommands that are executables of their own.
  { from: 'commander', modules: ['node:child_process'] },
];

/**
 * The command uses only KubeConfig and the WebSocket of a port-forward from @kubernetes/client-node. KubeConfig also
 * makes typed clients over undici, reads YAML, connects through proxies, and knows three kinds of auth-provider. The
 * command refuses or replaces all of these (cli/support/kubeconfig.ts). With them it would be twice as large, and each
 * call that connects to a cluster would take half as long again as Node.js itself needs to start.
 */
const OF_THE_COMMAND: readonly LeftOut[] = [
  {
    from: '@kubernetes/client-node',
    modules: [
      'undici',
      'js-yaml',
      'socks',
      'socks-proxy-agent',
      'hpagent',
      'jsonpath-plus',
      'openid-client',
      './gen/index.js',
    ],
  },
];

/** The daemons use express for routes and JSON bodies. */
const OF_DAEMONS: readonly LeftOut[] = [
  { from: 'express', modules: ['serve-static', 'send', 'qs'] },
  { from: 'mime-types', modules: ['mime-db'] },
  // Definitions of channelz and ORCA, two services for debugging that are not served.
  { from: '@grpc/grpc-js', modules: ['@grpc/proto-loader'] },
  // Exemplars, which are off.
  { from: 'prom-client', modules: ['@opentelemetry/api'] },
];

export const withoutUnusedInCommand = leaving([...EVERYWHERE, ...OF_THE_COMMAND]);
export const withoutUnusedInDaemons = leaving([...EVERYWHERE, ...OF_DAEMONS]);

/** Replaces the modules by empty ones: the first use of a member is an error. */
function leaving(list: readonly LeftOut[]): Plugin {
  const nothing = { path: 'nothing', namespace: 'left-out' };
  return {
    name: 'left-out',
    setup(builder) {
      for (const { from, modules } of list) {
        const filter = new RegExp(`^(?:${modules.map((name) => name.replaceAll(/[./]/g, '\\$&')).join('|')})$`);
        builder.onResolve({ filter }, ({ importer }) =>
          importer.includes(`/node_modules/${from}/`) ? nothing : undefined,
        );
      }
      builder.onLoad({ filter: /^/, namespace: nothing.namespace }, () => ({ contents: 'module.exports = {};' }));
    },
  };
}
