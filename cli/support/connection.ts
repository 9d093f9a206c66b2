import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import * as z from 'zod';
import { type ApiCluster, type Credentials, type Kubeconfig, loadKubeconfig } from '../../kube/kubeconfig.ts';
import { MAX_CREDENTIAL_BYTES, readInput } from '../../runtime/input-file.ts';
import { oneLine } from './errors.ts';
import { CliError, EXIT } from './exit-status.ts';

export type ClusterChoice = Partial<Record<'kubeconfig' | 'context' | 'as', string | undefined>>;

/** Selects a cluster from flags and environment. @throws CliError, ConfigError */
export function findCluster({ kubeconfig: path, context, as }: ClusterChoice): Kubeconfig {
  const files = kubeconfigFiles(path);
  const kubeconfig = files.length > 0 ? loadKubeconfig(files, context) : serviceAccount();
  const { user, cluster } = kubeconfig;
  const { exec } = user;
  return {
    ...kubeconfig,
    ...(as !== undefined && { user: { ...user, impersonateUser: as } }),
    ...(exec !== undefined && { credentials: pluginCredentials(exec as CredentialPlugin, cluster) }),
  };
}

/** As kubectl: --kubeconfig, else KUBECONFIG without missing files, else the default. */
function kubeconfigFiles(kubeconfig: string | undefined): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = filesInEnvironment();
  return (listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')]).filter(existsSync);
}

function filesInEnvironment(): string[] {
  return (process.env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** In a pod. @throws CliError outside of pods, and without the files of a service account */
function serviceAccount(): Kubeconfig {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = process.env;
  if (host === undefined) {
    const listed = filesInEnvironment();
    const does = listed.length > 1 ? 'none of which exists' : 'which does not exist';
    const message =
      listed.length > 0
        ? `KUBECONFIG names ${listed.join(' and ')}, ${does}: correct it, or give --kubeconfig`
        : 'no kubeconfig found: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config';
    throw new CliError(EXIT.unreachable, message);
  }
  const read = (name: string): Buffer => {
    try {
      return readInput(join(SERVICE_ACCOUNT, name), MAX_CREDENTIAL_BYTES);
    } catch (error) {
      const { message } = error as Error;
      throw new CliError(EXIT.unreachable, `cannot read ${name} of the service account: ${message}; give --kubeconfig`);
    }
  };
  return {
    context: 'of the service account',
    contexts: [],
    namespace: existsSync(join(SERVICE_ACCOUNT, 'namespace')) ? read('namespace').toString().trim() : undefined,
    cluster: {
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      caData: read('ca.crt').toString('base64'),
      skipTLSVerify: false,
    },
    user: {},
    credentials: () => ({ token: read('token').toString().trim() }),
  };
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

/** Gets credentials from the plugin, and again when they have expired: `top --watch` may outlive a token. */
function pluginCredentials(plugin: CredentialPlugin, cluster: ApiCluster): () => Credentials {
  let credential: ExecCredential | undefined;
  return () => {
    const expires = credential?.expirationTimestamp;
    if (credential === undefined || (expires && Date.parse(expires) <= Date.now())) {
      credential = runPlugin(plugin, cluster);
    }
    const { token, clientCertificateData, clientKeyData } = credential;
    return {
      token: token ?? undefined,
      cert: clientCertificateData || undefined,
      key: clientKeyData || undefined,
    };
  };
}

/**
 * Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
 * @throws CliError if the plugin is missing, fails or prints something else
 */
function runPlugin(plugin: CredentialPlugin, cluster: ApiCluster): ExecCredential {
  const { command, args, env, apiVersion, installHint, provideClusterInfo } = plugin;
  const clusterInfo = {
    server: cluster.server,
    'certificate-authority-data': cluster.caData,
    'tls-server-name': cluster.tlsServerName,
    'insecure-skip-tls-verify': cluster.skipTLSVerify || undefined,
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
