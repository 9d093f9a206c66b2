import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { ApiAccess } from '../../kube/api-access.ts';
import { CliError, EXIT } from './exit-status.ts';
import { chooseContext, type KubeconfigChoice } from './kubeconfig.ts';

/** Import this file lazily: client-node would cost every start of the command some milliseconds. */

/** The selected cluster and its configuration. */
export interface Found {
  /** For messages. */
  readonly name: string;
  readonly config: KubeConfig;
  readonly namespace: string | undefined;
}

export interface ClusterChoice extends KubeconfigChoice {
  /** --as */
  readonly as?: string | undefined;
}

/** Selects a cluster from flags and environment. @throws CliError */
export function findCluster({ as, ...flags }: ClusterChoice): Found {
  const found = chosenCluster(flags);
  if (as !== undefined) {
    const { config } = found;
    const current = config.getCurrentUser()?.name;
    config.users = config.users.map((one) => (one.name === current ? { ...one, impersonateUser: as } : one));
  }
  return found;
}

function chosenCluster(flags: KubeconfigChoice): Found {
  const chosen = chooseContext(flags);
  if (chosen) return { ...chosen, name: `context ${chosen.name}` };
  if (process.env.KUBERNETES_SERVICE_HOST === undefined) {
    const message = 'no kubeconfig found: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config';
    throw new CliError(EXIT.unreachable, message);
  }
  const config = new KubeConfig();
  config.loadFromCluster();
  const { namespace } = config.getContextObject(config.getCurrentContext()) ?? {};
  return { name: 'the service account of this pod', config, namespace: namespace?.trim() };
}

/** The connection of a KubeConfig, as client-node builds it from the current files. @throws CliError */
export function accessOf({ name, config }: Found): ApiAccess {
  return {
    server: (config.getCurrentCluster()?.server ?? '').replace(/\/+$/, ''),
    async requestOptions() {
      const options: RequestOptions = {};
      try {
        await config.applyToHTTPSOptions(options);
      } catch (error) {
        if (error instanceof CliError) throw error;
        const { path, message } = error as NodeJS.ErrnoException;
        const what = path === undefined ? message : `cannot read ${path}: ${message}`;
        throw new CliError(EXIT.unreachable, `${name}: ${what}`, { cause: error });
      }
      const { ca, cert, key, rejectUnauthorized, servername, headers } = options;
      return {
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        ...(servername !== undefined && { servername }),
        rejectUnauthorized: rejectUnauthorized !== false,
        headers: headers as Readonly<Record<string, string>>,
      };
    },
  };
}
