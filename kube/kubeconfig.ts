import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import { PlumblineError } from '../model/errors.ts';
import { ConfigError } from '../runtime/config.ts';
import { MAX_CREDENTIAL_BYTES, readInput } from '../runtime/input-file.ts';
import type { ApiAccess, ApiConnectionOptions, DaemonAccess } from './api-access.ts';

/** What a kubeconfig, or several, select for one context (ADR 0001). Import this file lazily: parsing YAML costs 10 ms. */
export interface Kubeconfig {
  readonly context: string;
  /** Names of all contexts. */
  readonly contexts: readonly string[];
  readonly namespace: string | undefined;
  readonly cluster: ApiCluster;
  readonly user: ApiUser;
  readonly tokenFile?: string | undefined;
  /** Credentials that change while a process runs; they take precedence over those of `user`. Called for each request. */
  readonly credentials?: (() => Credentials) | undefined;
}

export interface ApiCluster {
  /** Without a slash at its end. */
  readonly server: string;
  /** Base64. */
  readonly caData?: string | undefined;
  readonly tlsServerName?: string | undefined;
  readonly skipTLSVerify: boolean;
  readonly proxyUrl?: string | undefined;
}

export interface ApiUser {
  readonly token?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Base64. */
  readonly certData?: string | undefined;
  readonly keyData?: string | undefined;
  readonly impersonateUser?: string | undefined;
  /** A credential plugin, not checked. */
  readonly exec?: unknown;
  /** Not checked. */
  readonly authProvider?: unknown;
}

export interface Credentials {
  readonly token?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

const UNSUPPORTED = ['as-uid', 'as-groups', 'as-user-extra'];

const text = z
  .string()
  .nullish()
  .transform((value) => value || undefined);
const contextFields = z.looseObject({ cluster: text, user: text, namespace: text });
const clusterFields = z.looseObject({
  server: text,
  'tls-server-name': text,
  'proxy-url': text,
  'certificate-authority': text,
  'certificate-authority-data': text,
});
const userFields = z.looseObject({
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
});
type ClusterFields = z.infer<typeof clusterFields>;
type UserFields = z.infer<typeof userFields>;
const kubeconfigFile = z.looseObject({
  'current-context': text,
  contexts: z.array(z.looseObject({ name: z.string(), context: contextFields.nullish() })).nullish(),
  clusters: z.array(z.looseObject({ name: z.string(), cluster: clusterFields.nullish() })).nullish(),
  users: z.array(z.looseObject({ name: z.string(), user: userFields.nullish() })).nullish(),
});

/** A thousand clusters with their certificates need less. */
const MAX_KUBECONFIG_BYTES = 16 * 1024 * 1024;

/** Of several files the first with a value applies, as with kubectl. @throws ConfigError */
export function loadKubeconfig(paths: readonly string[], contextName?: string): Kubeconfig {
  const files = paths.map(loadFile);
  const refusal = (why: string) => new ConfigError(`${paths.join(', ')}: ${why}`);
  // An incomplete entry elsewhere in the file does not affect the selected context.
  const contexts = files.flatMap((file) => file.contexts ?? []).filter(({ context }) => context?.cluster);
  const names = contexts.map((entry) => entry.name);
  const name = contextName ?? files.find((file) => file['current-context'])?.['current-context'];
  const listed = names.join(', ') || 'none';
  if (!name) throw refusal(`no current context; choose one with --context (${listed})`);
  const context = contexts.find((entry) => entry.name === name)?.context;
  if (!context) throw refusal(`there is no context ${name}; choose one of ${listed}`);
  const clusters = files.flatMap((file) => file.clusters ?? []);
  const cluster = clusters.find((entry) => entry.name === context.cluster && entry.cluster?.server)?.cluster;
  if (!cluster?.server) {
    throw refusal(`context ${name} names cluster ${context.cluster}, which is missing or has no server`);
  }
  if (!/^https?:\/\/[^/]/.test(cluster.server) || !URL.canParse(cluster.server)) {
    throw refusal(`context ${name}: the server ${JSON.stringify(cluster.server)} is not a URL`);
  }
  const users = files.flatMap((file) => file.users ?? []);
  const entry = context.user ? users.find((one) => one.name === context.user) : undefined;
  if (context.user && entry === undefined) {
    throw refusal(`context ${name} names user ${context.user}, which is missing`);
  }
  const user = entry?.user;
  const field = UNSUPPORTED.find((key) => user && key in user);
  if (field) throw refusal(`context ${name}: ${field} is not supported; impersonate only by user name (as)`);
  const tokenFile = user?.tokenFile;
  return {
    context: name,
    contexts: names,
    namespace: context.namespace?.trim(),
    cluster: clusterOf(cluster),
    user: user ? userOf(user) : {},
    tokenFile,
    credentials: tokenFile === undefined ? undefined : () => ({ token: readToken(tokenFile) }),
  };
}

/** Paths in it are relative to the file. @throws ConfigError */
function loadFile(path: string): z.infer<typeof kubeconfigFile> {
  let document: unknown;
  try {
    const content = readInput(path, MAX_KUBECONFIG_BYTES).toString();
    document = parse(content, { merge: true, logLevel: 'error' });
    if (document === null) throw new Error('the input is empty');
  } catch (cause) {
    // The other lines of a YAML error quote the file, which may contain a token.
    throw new ConfigError(`cannot read the kubeconfig ${path}: ${(cause as Error).message.split('\n')[0]}`);
  }
  const { success, data, error } = kubeconfigFile.safeParse(document);
  if (!success) {
    const [issue] = error.issues;
    throw new ConfigError(`${path} is not a kubeconfig: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`);
  }
  const directory = dirname(resolve(path));
  for (const { cluster } of data.clusters ?? []) makeAbsolute(cluster, ['certificate-authority'], directory);
  for (const { user } of data.users ?? []) {
    makeAbsolute(user, ['tokenFile', 'client-certificate', 'client-key'], directory);
  }
  return data;
}

function makeAbsolute(fields: Record<string, unknown> | null | undefined, names: readonly string[], directory: string) {
  for (const name of names) {
    const path = fields?.[name];
    if (fields && typeof path === 'string') fields[name] = resolve(directory, path);
  }
}

function clusterOf(entry: ClusterFields): ApiCluster {
  const server = (entry.server ?? '').replace(/\/+$/, '');
  return {
    server,
    caData: dataOf('certificate-authority', entry['certificate-authority-data'], entry['certificate-authority']),
    tlsServerName: entry['tls-server-name'],
    skipTLSVerify: entry['insecure-skip-tls-verify'] === true,
    proxyUrl: entry['proxy-url'],
  };
}

function userOf(entry: UserFields): ApiUser {
  return {
    token: entry.token,
    username: entry.username,
    password: entry.password,
    certData: dataOf('client-certificate', entry['client-certificate-data'], entry['client-certificate']),
    keyData: dataOf('client-key', entry['client-key-data'], entry['client-key']),
    impersonateUser: entry.as,
    exec: entry['exec'] ?? undefined,
    authProvider: entry['auth-provider'] ?? undefined,
  };
}

function dataOf(field: string, data: string | undefined, file: string | undefined): string | undefined {
  return data ?? (file && readCredential(field, file).toString('base64'));
}

function readCredential(field: string, file: string): Buffer {
  try {
    return readInput(file, MAX_CREDENTIAL_BYTES);
  } catch (error) {
    throw new ConfigError(`cannot read ${field} ${file} of the kubeconfig: ${(error as Error).message}`);
  }
}

function readToken(file: string): string {
  return readCredential('tokenFile', file).toString().trim();
}

/** The connection of a kubeconfig. */
export function accessOf(kubeconfig: Kubeconfig): ApiAccess {
  const { cluster, user, context } = kubeconfig;
  return {
    server: cluster.server,
    async requestOptions() {
      try {
        const options = optionsOf(kubeconfig);
        if (!cluster.proxyUrl && user.authProvider === undefined) return options;
        const { throughLibrary } = await import('./kubeconfig-library.ts');
        return await throughLibrary(kubeconfig, options);
      } catch (error) {
        if (error instanceof PlumblineError) throw error;
        throw new ConfigError(`no credentials for context ${context}: ${(error as Error).message}`);
      }
    },
  };
}

function optionsOf({ cluster, user, credentials }: Kubeconfig): ApiConnectionOptions {
  const { caData, tlsServerName, skipTLSVerify } = cluster;
  const { token, cert, key } = credentials?.() ?? { token: user.token };
  const decoded = (data: string | undefined) => (data === undefined ? undefined : Buffer.from(data, 'base64'));
  const options = {
    ca: decoded(caData),
    cert: cert ?? decoded(user.certData),
    key: key ?? decoded(user.keyData),
    servername: tlsServerName,
    rejectUnauthorized: skipTLSVerify ? false : undefined,
    auth: user.username && `${user.username}:${user.password ?? ''}`,
  };
  const headers = {
    ...(token && { Authorization: `Bearer ${token}` }),
    ...(user.impersonateUser && { 'Impersonate-User': user.impersonateUser }),
  };
  const present = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(present), headers };
}

/** The access of a daemon. @throws ConfigError as loadKubeconfig, and if the user has a credential plugin */
export function kubeconfigAccess(file: string): DaemonAccess {
  const kubeconfig = loadKubeconfig([file]);
  const { user, tokenFile } = kubeconfig;
  if (user.exec !== undefined) {
    throw new ConfigError(`${file}: credential plugins are not supported here; use a token or a client certificate`);
  }
  return {
    ...accessOf(kubeconfig),
    token: () => (tokenFile === undefined ? user.token : readToken(tokenFile)),
    tokenFile,
  };
}
