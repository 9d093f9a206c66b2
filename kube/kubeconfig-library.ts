import { KubeConfig } from '@kubernetes/client-node';
import type { ApiConnectionOptions } from './api-access.ts';
import type { Kubeconfig } from './kubeconfig.ts';

/** Import this file lazily: client-node costs a tenth of a second and 20 MB. */

const libraryConfigs = new WeakMap<Kubeconfig, KubeConfig>();

/** The options of requests through a proxy, or of a user whose auth-provider renews its tokens (ADR 0001). */
export async function throughLibrary(
  kubeconfig: Kubeconfig,
  options: ApiConnectionOptions,
): Promise<ApiConnectionOptions> {
  const { cluster, user } = kubeconfig;
  let config = libraryConfigs.get(kubeconfig);
  if (config === undefined) {
    config = new KubeConfig();
    const { server, proxyUrl } = cluster;
    const isPlain = server.startsWith('http:');
    config.loadFromClusterAndUser(
      { name: 'cluster', server, skipTLSVerify: isPlain, ...(proxyUrl && { proxyUrl }) },
      { name: 'user', authProvider: user.authProvider },
    );
    libraryConfigs.set(kubeconfig, config);
  }
  const all: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = { ...options, headers: { ...options.headers } };
  await config.applyToHTTPSOptions(all);
  // Only this agent knows the proxy. Without a proxy the client's own agent keeps connections open.
  const { agent, ...rest } = all;
  return { ...rest, ...(cluster.proxyUrl && { agent }) } as ApiConnectionOptions;
}
