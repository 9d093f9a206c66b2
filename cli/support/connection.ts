import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import * as z from 'zod';
import { type Kubeconfig, loadKubeconfig, replaceAuthentication, setToken } from '../../kube/kubeconfig.ts';
import { oneLine } from './errors.ts';
import { CliError, EXIT } from './exit-status.ts';

/** Import this file lazily: client-node costs a tenth of a second. */

type ClusterChoice = Partial<Record<'kubeconfig' | 'context' | 'as', string | undefined>>;

/** Selects a cluster from flags and environment. @throws CliError, ConfigError */
export function findCluster({ kubeconfig: path, context, as }: ClusterChoice): KubeConfig {
  const files = kubeconfigFiles(path);
  const kubeconfig = files.length > 0 ? loadKubeconfig(files, context) : undefined;
  if (kubeconfig?.exec) addCredentialPlugin(kubeconfig);
  const config = kubeconfig?.config ?? serviceAccount();
  if (as !== undefined) config.users = config.users.map((user) => ({ ...user, impersonateUser: as }));
  return config;
}

/** As kubectl: --kubeconfig, else KUBECONFIG without missing files (loadFromDefault refuses them), else the default. */
function kubeconfigFiles(kubeconfig: string | undefined): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = filesInEnvironment();
  return (listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')]).filter(existsSync);
}

function filesInEnvironment(): string[] {
  return (process.env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
}

function serviceAccount(): KubeConfig {
  if (process.env.KUBERNETES_SERVICE_HOST === undefined) {
    const listed = filesInEnvironment();
    const none = 'no kubeconfig found: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config';
    const does = listed.length > 1 ? 'none of which exists' : 'which does not exist';
    const missing = `KUBECONFIG names ${listed.join(' and ')}, ${does}: correct it, or give --kubeconfig`;
    throw new CliError(EXIT.unreachable, listed.length > 0 ? missing : none);
  }
  const config = new KubeConfig();
  config.loadFromCluster();
  return config;
}

interface CredentialPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
}

const execCredential = z.object({
  status: z.object({
    token: z.string().min(1).nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish(),
  }),
});
type ExecCredential = z.infer<typeof execCredential>['status'];

const MAX_OUTPUT_BYTES = 1024 * 1024;

/**
 * Gets credentials from the plugin, and again when they have expired: `top --watch` may outlive a token. The runner of
 * client-node passes no KUBERNETES_EXEC_INFO, and takes terminal and standard error away from the plugin: a login prompt
 * is invisible and waits forever (ADR 0001).
 */
function addCredentialPlugin({ config, exec }: Kubeconfig): void {
  let credential: ExecCredential | undefined;
  replaceAuthentication(config, async (_, options) => {
    const expires = credential?.expirationTimestamp;
    if (credential === undefined || (expires && Date.parse(expires) <= Date.now())) {
      credential = runPlugin(exec as CredentialPlugin, config.getCurrentCluster());
    }
    const { token, clientCertificateData, clientKeyData } = credential;
    if (clientCertificateData) options.cert = clientCertificateData;
    if (clientKeyData) options.key = clientKeyData;
    if (token) setToken(options, token);
  });
}

/**
 * Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
 * @throws CliError if the plugin is missing, fails or prints something else
 */
function runPlugin(plugin: CredentialPlugin, cluster: ReturnType<Kubeconfig['config']['getCurrentCluster']>) {
  const { command, args, env, apiVersion, installHint, provideClusterInfo } = plugin;
  const clusterInfo = {
    server: cluster?.server,
    'certificate-authority-data': cluster?.caData || undefined,
    'tls-server-name': cluster?.tlsServerName,
    'insecure-skip-tls-verify': cluster?.skipTLSVerify || undefined,
  };
  const spec = { interactive: process.stdin.isTTY === true, ...(provideClusterInfo && { cluster: clusterInfo }) };
  const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
  const { error, status, stdout } = spawnSync(command, args ?? [], {
    env: { ...process.env, ...variables, KUBERNETES_EXEC_INFO: info },
    stdio: ['inherit', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  const failed = (how: string) =>
    new CliError(EXIT.unreachable, `the credential plugin ${command} of the kubeconfig ${how}`);
  if (error !== undefined)
    throw failed(`cannot run: ${error.message}${installHint ? `; ${oneLine(installHint)}` : ''}`);
  if (status !== 0) throw failed(`failed (status ${status})`);
  try {
    return execCredential.parse(JSON.parse(stdout)).status;
  } catch {
    throw failed('did not return an ExecCredential');
  }
}
