import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { checkServerIdentity } from 'node:tls';
import { type Cluster, KubeConfig, type User } from '@kubernetes/client-node';
import { load as loadYaml } from 'js-yaml';
import * as z from 'zod';
import { PlumblineError } from '../model/errors.ts';
import { ConfigError } from '../runtime/config.ts';
import { MAX_CREDENTIAL_BYTES, readInput } from '../runtime/input-file.ts';
import type { ApiAccess, ApiConnectionOptions, DaemonAccess } from './client.ts';

/** Works around defects of client-node 2.0.1 (ADR 0001). Import it lazily: it costs 20 MB of memory. */

export interface Kubeconfig {
  readonly config: KubeConfig;
  readonly tokenFile: string | undefined;
  readonly exec: unknown;
}

type ApplyAuthentication = Parameters<KubeConfig['addAuthenticator']>[0]['applyAuthentication'];
/** KubeConfig drops these fields of a user. */
type FileUser = User & { readonly tokenFile?: string };
const UNSUPPORTED = ['as-uid', 'as-groups', 'as-user-extra'];

const text = z.string().nullish();
const entries = (kind: string, ...fields: string[]) =>
  z.array(
    z.looseObject({
      name: z.string(),
      [kind]: z.looseObject(Object.fromEntries(fields.map((field) => [field, text]))).nullish(),
    }),
  );
const certificate = (name: string) => [name, `${name}-data`];
/** Values of another type are a TypeError later, or the number of a file descriptor. */
const kubeconfigFile = z.looseObject({
  'current-context': text,
  contexts: entries('context', 'cluster', 'user', 'namespace').nullish(),
  clusters: entries('cluster', 'tls-server-name', 'proxy-url', ...certificate('certificate-authority')).nullish(),
  users: entries(
    'user',
    'token',
    'tokenFile',
    ...certificate('client-certificate'),
    ...certificate('client-key'),
  ).nullish(),
});

const readToken = (file: string) => readCredential('tokenFile', file).toString().trim();

/** A thousand clusters with their certificates need less. */
const MAX_KUBECONFIG_BYTES = 16 * 1024 * 1024;

/** As with kubectl, the first file with a value counts; KubeConfig refuses a name twice. @throws ConfigError */
export function loadKubeconfig(paths: readonly string[], contextName?: string): Kubeconfig {
  const files = paths.map(loadFile);
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: files.flatMap(({ clusters }) => clusters),
    users: files.flatMap(({ users }) => users),
    contexts: files.flatMap(({ contexts }) => contexts),
    currentContext: contextName ?? files.find(({ currentContext }) => currentContext)?.currentContext,
  });
  const name = config.currentContext;
  const refusal = (why: string) => new ConfigError(`${paths.join(', ')}: ${why}`);
  const names = config.contexts.map((entry) => entry.name).join(', ') || 'none';
  if (!name) throw refusal(`no current context; choose one with --context (${names})`);
  const context = config.getContextObject(name);
  if (context === null) throw refusal(`there is no context ${name}; choose one of ${names}`);
  const cluster = config.getCluster(context.cluster);
  if (!cluster) throw refusal(`context ${name} names cluster ${context.cluster}, which is missing or has no server`);
  if (!/^https?:\/\/[^/]/.test(cluster.server) || !URL.canParse(cluster.server)) {
    throw refusal(`context ${name}: the server ${JSON.stringify(cluster.server)} is not a URL`);
  }
  // Without a user KubeConfig ignores the cluster's CA.
  const user: FileUser | null = context.user ? config.getUser(context.user) : { name: 'anonymous' };
  if (user === null) throw refusal(`context ${name} names user ${context.user}, which is missing`);
  const field = UNSUPPORTED.find((key) => key in user);
  if (field) throw refusal(`context ${name}: ${field} is not supported; impersonate only by user name (as)`);
  const { tokenFile, exec } = user;
  config.clusters = [withCertificates(cluster)];
  config.users = [withKeys(user)];
  config.contexts = [{ ...context, user: user.name }];
  if (tokenFile) replaceAuthentication(config, async (_, options) => setToken(options, readToken(tokenFile)));
  return { config, tokenFile, exec };
}

function loadFile(path: string): KubeConfig {
  let document: unknown;
  try {
    document = loadYaml(readInput(path, MAX_KUBECONFIG_BYTES).toString());
  } catch (cause) {
    // The other lines of a YAML error quote the file, which may contain a token.
    throw new ConfigError(`cannot read the kubeconfig ${path}: ${(cause as Error).message.split('\n')[0]}`);
  }
  const { success, data, error } = kubeconfigFile.safeParse(document ?? {});
  if (!success) {
    const [issue] = error.issues;
    throw new ConfigError(`${path} is not a kubeconfig: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`);
  }
  const config = new KubeConfig();
  const directory = dirname(resolve(path));
  // An incomplete entry elsewhere in the file does not affect the selected context.
  config.loadFromString(JSON.stringify(data), { onInvalidEntry: 'filter' });
  config.makePathsAbsolute(directory);
  config.users = config.users.map((user): FileUser => {
    const fields = data.users?.find(({ name }) => name === user.name)?.['user'] as FileUser | undefined;
    return { ...fields, ...user, ...(fields?.tokenFile && { tokenFile: resolve(directory, fields.tokenFile) }) };
  });
  return config;
}

/** KubeConfig refuses an API server without TLS, such as `kubectl proxy`. */
function withCertificates({ caFile, ...cluster }: Cluster): Cluster {
  return {
    ...cluster,
    server: cluster.server.replace(/\/+$/, ''),
    caData: dataOf('certificate-authority', cluster.caData, caFile),
    skipTLSVerify: cluster.skipTLSVerify || cluster.server.startsWith('http:'),
  };
}

function withKeys({ certFile, keyFile, ...user }: User): User {
  return {
    ...user,
    certData: dataOf('client-certificate', user.certData, certFile),
    keyData: dataOf('client-key', user.keyData, keyFile),
  };
}

/** KubeConfig prefers the file to the data, and reads it for each request, without a limit. */
function dataOf(field: string, data: string | undefined, file: string | undefined): string {
  return data || (file ? readCredential(field, file).toString('base64') : '');
}

function readCredential(field: string, file: string): Buffer {
  try {
    return readInput(file, MAX_CREDENTIAL_BYTES);
  } catch (error) {
    throw new ConfigError(`cannot read ${field} ${file} of the kubeconfig: ${(error as Error).message}`);
  }
}

/** Puts a bearer token into the headers of a request. */
export function setToken(options: Parameters<ApplyAuthentication>[1], token: string): void {
  options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
}

/** KubeConfig applies added authenticators only to users with an auth-provider, and `token` after them. */
export function replaceAuthentication(config: KubeConfig, applyAuthentication: ApplyAuthentication): void {
  const authProvider = { name: 'plumbline' };
  config.users = config.users.map(({ exec, token, ...user }) => ({ ...user, authProvider }));
  config.addAuthenticator({ isAuthProvider: (user) => user.authProvider === authProvider, applyAuthentication });
}

/** The connection of a KubeConfig; credentials that expire are renewed. */
export function accessOf(config: KubeConfig): ApiAccess {
  const { server = '', proxyUrl } = config.getCurrentCluster() ?? {};
  return {
    server,
    async requestOptions() {
      const options: RequestOptions = {};
      try {
        await config.applyToHTTPSOptions(options);
      } catch (error) {
        if (error instanceof PlumblineError) throw error;
        throw new ConfigError(`no credentials for context ${config.currentContext}: ${(error as Error).message}`);
      }
      const { agent, ...rest } = options;
      // The client's own agent keeps connections open.
      if (!proxyUrl) return rest as ApiConnectionOptions;
      // Only this agent knows the proxy. The one for SOCKS forgets an IP address, and would check for localhost.
      const name = rest.servername ?? new URL(server).hostname.replace(/^\[|\]$/g, '');
      const checkIdentity: typeof checkServerIdentity = (_, certificate) => checkServerIdentity(name, certificate);
      return { ...rest, agent, checkServerIdentity: checkIdentity } as ApiConnectionOptions;
    },
  };
}

/** The access of a daemon. @throws ConfigError as loadKubeconfig, and if the user has a credential plugin */
export function kubeconfigAccess(file: string): DaemonAccess {
  const { config, tokenFile, exec } = loadKubeconfig([file]);
  if (exec) {
    throw new ConfigError(`${file}: credential plugins are not supported here; use a token or a client certificate`);
  }
  const token = config.getCurrentUser()?.token;
  return { ...accessOf(config), token: () => (tokenFile === undefined ? token : readToken(tokenFile)), tokenFile };
}
