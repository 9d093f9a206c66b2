import { existsSync, readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { type ApiAccess, apiAccess } from '../../kube/api-access.ts';
import { createApiClient } from '../../kube/api-client.ts';
import type { KubeClient } from '../../kube/client.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type ExecCredential, execCredential } from './exec-credential.ts';
import { CliError, EXIT } from './exit-status.ts';
import { type ChosenContext, chooseContext } from './kubeconfig.ts';

/**
 * How a command reaches a cluster. In its `command.ts`:
 *
 *     withCluster(new Command('mine')).action((flags: ClusterFlags) => usingCluster(flags, async ({ client }) => …))
 *
 * `withNamespace` adds -n. Failures of the cluster become one line and status 3 by themselves (errors.ts); lists are read
 * with readAll (lists.ts), which also tells of a cluster where Plumbline is not installed.
 */
export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Seconds. */
  readonly requestTimeout?: number;
  readonly namespace?: string;
}

export interface ClusterAccess {
  readonly client: KubeClient;
  /** For what goes over other connections than the client's. */
  readonly access: ApiAccess;
  /** What -n says, else the context, else `default`. */
  readonly namespace: string;
}

/** kubectl's flags for which cluster is meant. */
export function withCluster(command: Command): Command {
  return command
    .option('--kubeconfig <path>', 'kubeconfig file; default: KUBECONFIG, else ~/.kube/config')
    .option('--context <name>', 'context of the kubeconfig; default: its current one')
    .option('--request-timeout <seconds>', 'how long to wait for each answer of the cluster; default: 10', seconds);
}

/** kubectl's -n. */
export function withNamespace(command: Command): Command {
  return command.option('-n, --namespace <name>', 'namespace; default: that of the context');
}

/** Seconds, also as kubectl writes them: 10s, 2m. */
function seconds(text: string): number {
  const [, amount, unit = 's'] = /^(\d{1,4})(s|m)?$/.exec(text) ?? [];
  const value = Number(amount) * (unit === 'm' ? 60 : 1);
  if (amount === undefined || value === 0) throw new InvalidArgumentError('expected seconds, as 10, 10s or 1m');
  return value;
}

/** Runs something with a connection to the cluster, which is closed afterwards. @throws CliError, KubeError */
export async function usingCluster<T>(flags: ClusterFlags, use: (access: ClusterAccess) => Promise<T>): Promise<T> {
  const { access, namespace } = findAccess(flags);
  const client = withTimeout(createApiClient(access, `plumbline/${packageJson.version}`, CONNECTIONS), flags);
  try {
    return await use({ client, access, namespace: flags.namespace ?? namespace ?? 'default' });
  } finally {
    await client.close();
  }
}

/** Lists are read side by side. */
const CONNECTIONS = 8;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

function findAccess(flags: ClusterFlags): { access: ApiAccess; namespace: string | undefined } {
  const chosen = chooseContext(flags);
  if (chosen) return { access: accessOf(chosen), namespace: chosen.namespace };
  const serviceHost = process.env.KUBERNETES_SERVICE_HOST;
  if (serviceHost === undefined) {
    const message = 'no kubeconfig was found: give --kubeconfig, set KUBECONFIG, or write ~/.kube/config';
    throw new CliError(EXIT.unreachable, message);
  }
  const servicePort = Number(process.env.KUBERNETES_SERVICE_PORT ?? 443);
  const namespace = existsSync(SERVICE_ACCOUNT) ? readFileSync(SERVICE_ACCOUNT, 'utf8').trim() : undefined;
  return { access: apiAccess({ kubeconfig: undefined, serviceHost, servicePort }), namespace };
}

function accessOf(chosen: ChosenContext): ApiAccess {
  const { name, cluster, user } = chosen;
  const refuse = (what: string, instead: string) =>
    new CliError(EXIT.unreachable, `context ${name}: ${what} is not supported; ${instead}`);
  if (!/^https?:\/\/[^/]/.test(cluster.server)) {
    throw new CliError(EXIT.unreachable, `context ${name}: the server ${JSON.stringify(cluster.server)} is no URL`);
  }
  if (cluster['proxy-url'] !== undefined) throw refuse('proxy-url', 'use a tunnel, and the server’s address in it');
  if (user['auth-provider']) throw refuse(`auth-provider ${user['auth-provider'].name}`, 'use its exec plugin');
  if (user.username !== undefined) throw refuse('a user name with password', 'use a token or a certificate');
  const credential = user.exec ? credentialOf(user.exec, cluster) : undefined;
  const given = (path: string | undefined, data: string | undefined) =>
    data !== undefined ? Buffer.from(data, 'base64') : path === undefined ? undefined : readGiven(name, path);
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ca: given(cluster['certificate-authority'], cluster['certificate-authority-data']),
    verify: cluster['insecure-skip-tls-verify'] !== true,
    serverName: cluster['tls-server-name'],
    cert: credential?.().cert ?? given(user['client-certificate'], user['client-certificate-data']),
    key: credential?.().key ?? given(user['client-key'], user['client-key-data']),
    token: () => {
      if (credential) return credential().token;
      return user.tokenFile === undefined ? user.token : readGiven(name, user.tokenFile).toString().trim();
    },
  };
}

/** The plugin's answer, asked for anew when it has run out: `top --watch` may run longer than a token lives. */
function credentialOf(plugin: NonNullable<ChosenContext['user']['exec']>, cluster: ChosenContext['cluster']) {
  let known: ExecCredential | undefined;
  return () => {
    if (known === undefined || known.expires <= Date.now()) known = execCredential(plugin, cluster);
    return known;
  };
}

function readGiven(context: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new CliError(EXIT.unreachable, `context ${context}: cannot read ${path}: ${(error as Error).message}`);
  }
}

function withTimeout(client: KubeClient, { requestTimeout: timeout }: ClusterFlags): KubeClient {
  if (timeout === undefined) return client;
  return { ...client, get: (path, options) => client.get(path, { timeout, ...options }) };
}
