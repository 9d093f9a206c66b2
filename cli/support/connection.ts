import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { loadKubeconfig } from '../../kube/kubeconfig.ts';
import { addCredentialPlugin } from './credential-plugin.ts';
import { CliError, EXIT } from './exit-status.ts';

/** Import this file lazily: client-node costs a tenth of a second. */

/** The flags of these names. */
export type ClusterChoice = Partial<Record<'kubeconfig' | 'context' | 'as', string | undefined>>;

/** Selects a cluster from flags and environment. @throws CliError, ConfigError */
export function findCluster({ kubeconfig, context, as }: ClusterChoice): KubeConfig {
  const files = kubeconfigFiles(kubeconfig);
  const config = files.length > 0 ? loadContext(files, context) : serviceAccount();
  if (as !== undefined) config.users = config.users.map((user) => ({ ...user, impersonateUser: as }));
  return config;
}

/**
 * The files that kubectl would read: --kubeconfig, else those in KUBECONFIG, else ~/.kube/config. Missing files in
 * KUBECONFIG are ignored, as in kubectl; KubeConfig.loadFromDefault refuses them.
 */
function kubeconfigFiles(kubeconfig: string | undefined): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (process.env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
  return (listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')]).filter(existsSync);
}

function loadContext(files: readonly string[], context: string | undefined): KubeConfig {
  const kubeconfig = loadKubeconfig(files, context);
  if (kubeconfig.exec) addCredentialPlugin(kubeconfig);
  return kubeconfig.config;
}

function serviceAccount(): KubeConfig {
  if (process.env.KUBERNETES_SERVICE_HOST === undefined) {
    const message = 'no kubeconfig found: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config';
    throw new CliError(EXIT.unreachable, message);
  }
  const config = new KubeConfig();
  config.loadFromCluster();
  return config;
}
