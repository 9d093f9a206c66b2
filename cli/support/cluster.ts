import type { KubeConfig } from '@kubernetes/client-node';
import type { KubeClient } from '../../kube/client.ts';
import packageJson from '../../package.json' with { type: 'json' };

/** `withCluster` (command.ts) adds them. */
export interface ClusterFlags {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly as?: string | undefined;
  readonly requestTimeout?: number;
  readonly namespace?: string | undefined;
}

export interface ClusterAccess {
  readonly client: KubeClient;
  readonly config: KubeConfig;
  readonly namespace: string;
  /** Context and server, for errors. */
  readonly clusterText: string;
  /** Seconds for each request over another connection; undefined: its default. */
  readonly requestTimeout?: number | undefined;
}

/** Lists are read concurrently, and the console keeps a watch of each of its kinds open besides its requests. */
const MAX_CONNECTIONS = 12;

/** Calls a function with a connection to the cluster, which is closed afterwards. @throws CliError, ClusterError */
export async function usingCluster<T>(flags: ClusterFlags, use: (access: ClusterAccess) => Promise<T>): Promise<T> {
  // Not for --help or completion: these cost more than everything else of a command.
  const { findCluster } = await import('./connection.ts');
  const { accessOf } = await import('../../kube/kubeconfig.ts');
  const { createKubeClient } = await import('../../kube/api-transport.ts');
  const { KubeError } = await import('../../kube/client.ts');
  const { ClusterError } = await import('./errors.ts');
  const config = findCluster(flags);
  const access = accessOf(config);
  // Reports invalid credentials before the first request.
  await access.requestOptions();
  const client = withTimeout(createKubeClient(access, `plumbline/${packageJson.version}`, MAX_CONNECTIONS), flags);
  const namespace = flags.namespace ?? config.getContextObject(config.currentContext)?.namespace?.trim() ?? 'default';
  const clusterText = `context ${config.currentContext}, server ${access.server}`;
  try {
    return await use({ client, config, namespace, clusterText, requestTimeout: flags.requestTimeout });
  } catch (error) {
    throw error instanceof KubeError ? new ClusterError(error, clusterText) : error;
  } finally {
    await client.close();
  }
}

function withTimeout(client: KubeClient, { requestTimeout: timeout }: ClusterFlags): KubeClient {
  if (timeout === undefined) return client;
  return {
    ...client,
    get: (path, options) => client.get(path, { ...options, timeout }),
    create: (path, body, options) => client.create(path, body, { ...options, timeout }),
  };
}
