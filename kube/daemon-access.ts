import { readFileSync } from 'node:fs';
import { apiServerAddress, ConfigError } from '../runtime/config.ts';
import type { DaemonAccess } from './client.ts';

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** What Kubernetes gives each pod. */
interface PodAccess {
  readonly serviceHost: string | undefined;
  readonly servicePort: number;
  /** Directory of the service account's files. Default: where the kubelet mounts them into each pod. */
  readonly serviceAccount?: string;
}

/** A kubeconfig counts only by a flag: a trial of a daemon must not act on the current context. @throws ConfigError */
export async function apiAccess(
  kubeconfig: string | undefined,
  { serviceHost, servicePort, serviceAccount = SERVICE_ACCOUNT }: PodAccess = apiServerAddress(),
): Promise<DaemonAccess> {
  if (kubeconfig !== undefined) {
    // A file of its own (build.ts): in a bundle that does not use it, client-node's text costs 8 MB of memory.
    const { kubeconfigAccess } = await import('./kubeconfig.ts');
    try {
      return kubeconfigAccess(kubeconfig);
    } catch (error) {
      // That file has its own copy of the class.
      throw new ConfigError((error as Error).message);
    }
  }
  if (serviceHost === undefined) {
    throw new ConfigError('this is not a pod (KUBERNETES_SERVICE_HOST is not set): give --kubeconfig');
  }
  const host = serviceHost.includes(':') ? `[${serviceHost}]` : serviceHost;
  const ca = readGiven(`${serviceAccount}/ca.crt`);
  const token = () => readGiven(`${serviceAccount}/token`).toString().trim();
  return {
    server: `https://${host}:${servicePort}`,
    requestOptions: () => ({ ca, headers: { authorization: `Bearer ${token()}` } }),
    token,
    tokenFile: undefined,
  };
}

function readGiven(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`cannot read ${file}: ${(error as Error).message}; give --kubeconfig`);
  }
}
