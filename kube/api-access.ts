import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import { parse } from 'yaml';
import * as z from 'zod';
import { ConfigError } from '../runtime/config.ts';

/** The address of the API server and the credentials of requests to it. */
export interface ApiAccess {
  /** `https://10.96.0.1:443`, without a slash at its end. */
  readonly server: string;
  /** Called for each request, because tokens are replaced while a process runs. */
  readonly requestOptions: () => ConnectionOptions | Promise<ConnectionOptions>;
}

/** Options of Node's `https.request`. Without `ca` the system's certificate authorities apply. */
export interface ConnectionOptions extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> {
  readonly rejectUnauthorized?: boolean;
  /** The name in the server's certificate, if it differs from the server's address. */
  readonly servername?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The access of a daemon: a service account, or a kubeconfig set by a flag. */
export interface DaemonAccess extends ApiAccess {
  /** The current bearer token; the kubelet replaces it every hour. Undefined: there is none. */
  readonly token: () => string | undefined;
  /** The file that holds the token; undefined if a kubeconfig contains the token itself or there is none. */
  readonly tokenFile: string | undefined;
}

/** Directory of the service account's files in a pod. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface AccessOptions {
  /** A kubeconfig file. Undefined: use the service account of this pod. */
  readonly kubeconfig: string | undefined;
  /** The environment variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. */
  readonly serviceHost: string | undefined;
  readonly servicePort: number;
  /** Directory of the service account's files. Default: where the kubelet mounts them into each pod. */
  readonly serviceAccount?: string;
}

/**
 * Selects the credentials of a daemon. It uses a kubeconfig only if a flag names one: otherwise a daemon that an
 * administrator tries out would act on the cluster of their current context.
 * @throws ConfigError if there is neither a usable kubeconfig nor a service account
 */
export function apiAccess(options: AccessOptions): DaemonAccess {
  const { kubeconfig, serviceHost, servicePort, serviceAccount = SERVICE_ACCOUNT } = options;
  if (kubeconfig !== undefined) return kubeconfigAccess(kubeconfig);
  if (serviceHost === undefined) {
    throw new ConfigError('this is not a pod (KUBERNETES_SERVICE_HOST is not set): give --kubeconfig');
  }
  const host = serviceHost.includes(':') ? `[${serviceHost}]` : serviceHost;
  return accessWith(`https://${host}:${servicePort}`, { ca: readGiven(`${serviceAccount}/ca.crt`) }, () =>
    readGiven(`${serviceAccount}/token`).toString().trim(),
  );
}

function accessWith(
  server: string,
  tls: ConnectionOptions,
  token: () => string | undefined,
  tokenFile?: string | undefined,
): DaemonAccess {
  return {
    server,
    requestOptions: () => {
      const bearer = token();
      return bearer === undefined ? tls : { ...tls, headers: { authorization: `Bearer ${bearer}` } };
    },
    token,
    tokenFile,
  };
}

const text = z.string().min(1).optional();
const kubeconfigFile = z.object({
  'current-context': z.string(),
  contexts: z.array(z.object({ name: z.string(), context: z.object({ cluster: z.string(), user: z.string() }) })),
  clusters: z.array(
    z.object({
      name: z.string(),
      cluster: z.object({
        server: z.url(),
        'certificate-authority': text,
        'certificate-authority-data': text,
        'insecure-skip-tls-verify': z.boolean().optional(),
        'tls-server-name': text,
      }),
    }),
  ),
  users: z.array(
    z.object({
      name: z.string(),
      user: z.object({
        token: text,
        tokenFile: text,
        'client-certificate': text,
        'client-certificate-data': text,
        'client-key': text,
        'client-key-data': text,
        exec: z.unknown().optional(),
        'auth-provider': z.unknown().optional(),
      }),
    }),
  ),
});

/**
 * Reads the current context of a kubeconfig that contains a token or a certificate. Credential plugins are not
 * supported.
 * @throws ConfigError if the file cannot be read, or if the context has no server or no supported credentials
 */
export function kubeconfigAccess(file: string): DaemonAccess {
  const found = kubeconfigFile.safeParse(parseYaml(file));
  if (!found.success) {
    const issue = found.error.issues[0];
    throw new ConfigError(`${file}: no usable kubeconfig: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const { contexts, clusters, users, 'current-context': current } = found.data;
  const context = contexts.find(({ name }) => name === current)?.context;
  const cluster = clusters.find(({ name }) => name === context?.cluster)?.cluster;
  const user = users.find(({ name }) => name === context?.user)?.user;
  if (cluster === undefined || user === undefined) {
    throw new ConfigError(`${file}: its current-context ${current} names no cluster and user of it`);
  }
  if (user.exec !== undefined || user['auth-provider'] !== undefined) {
    throw new ConfigError(`${file}: credential plugins are not supported here; use a token or a client certificate`);
  }
  const content = (path: string | undefined, data: string | undefined) => {
    if (data !== undefined) return Buffer.from(data, 'base64');
    return path === undefined ? undefined : readGiven(resolve(dirname(file), path));
  };
  const { token } = user;
  const tokenFile = user.tokenFile === undefined ? undefined : resolve(dirname(file), user.tokenFile);
  const tls = {
    ca: content(cluster['certificate-authority'], cluster['certificate-authority-data']),
    cert: content(user['client-certificate'], user['client-certificate-data']),
    key: content(user['client-key'], user['client-key-data']),
    rejectUnauthorized: cluster['insecure-skip-tls-verify'] !== true,
    ...(cluster['tls-server-name'] !== undefined && { servername: cluster['tls-server-name'] }),
  };
  const bearer = () => (tokenFile === undefined ? token : readGiven(tokenFile).toString().trim());
  return accessWith(cluster.server.replace(/\/+$/, ''), tls, bearer, tokenFile);
}

function parseYaml(file: string): unknown {
  const content = readGiven(file).toString();
  try {
    return parse(content);
  } catch (error) {
    throw new ConfigError(`${file}: not YAML: ${(error as Error).message.split('\n')[0]}`);
  }
}

function readGiven(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`cannot read ${file}: ${(error as Error).message}; give --kubeconfig`);
  }
}
