import { existsSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { Authenticator } from '@kubernetes/client-node/dist/auth.js';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import {
  type Cluster,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';
import { parse } from 'yaml';
import * as z from 'zod';
import { createExecAuthenticator, execPlugin } from './exec-credential.ts';
import { CliError, EXIT } from './exit-status.ts';
import { LARGEST_CREDENTIAL, readInput } from './input-file.ts';

export interface KubeconfigChoice {
  /** --kubeconfig */
  readonly kubeconfig?: string | undefined;
  /** --context */
  readonly context?: string | undefined;
}

/** The selected context. */
export interface ChosenContext {
  readonly name: string;
  readonly namespace: string | undefined;
  /** Only contains its cluster and its user. */
  readonly config: KubeConfig;
}

/** Bytes of a kubeconfig; a thousand clusters with their certificates need less. */
const LARGEST = 16 * 1024 * 1024;

const text = z.string().min(1).optional();
const named = <T extends z.ZodType>(key: string, of: T) =>
  z.array(z.looseObject({ name: z.string(), [key]: of.nullish() })).nullish();
const user = z.looseObject({
  token: text,
  tokenFile: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  exec: execPlugin.nullish(),
  'auth-provider': z.looseObject({ name: z.string() }).nullish(),
});
/** Values that client-node accepts without a check and that later cause a TypeError or no error at all. */
const file = z.looseObject({
  'current-context': z.string().nullish(),
  contexts: named('context', z.looseObject({ cluster: z.string(), user: z.string().nullish(), namespace: text })),
  clusters: named(
    'cluster',
    z.looseObject({
      server: z.string(),
      'certificate-authority': text,
      'certificate-authority-data': text,
      'insecure-skip-tls-verify': z.boolean().nullish(),
      'tls-server-name': text,
      'proxy-url': text,
    }),
  ),
  users: z.array(z.looseObject({ name: z.string(), user: user.nullish() })).nullish(),
});

/** A file as parsed by client-node, and the fields of users that it drops. */
interface Loaded {
  readonly config: KubeConfig;
  readonly users: readonly {
    readonly name: string;
    readonly directory: string;
    readonly given: z.infer<typeof user>;
  }[];
}

/**
 * The files that kubectl would read: --kubeconfig, else those in KUBECONFIG, else ~/.kube/config. Missing files in
 * KUBECONFIG are ignored, as in kubectl.
 */
function kubeconfigFiles({ kubeconfig }: KubeconfigChoice): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (process.env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
  return (listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')]).filter(existsSync);
}

/**
 * Reads the selected context; the first file with a value takes precedence. Undefined if there is no file at all.
 * @throws CliError if a file is malformed, refers to something that it does not contain, or uses an unsupported feature
 */
export function chooseContext(choice: KubeconfigChoice): ChosenContext | undefined {
  const files = kubeconfigFiles(choice);
  if (files.length === 0) return undefined;
  const loaded = files.map(load);
  // client-node's own merge refuses duplicate names, of which kubectl uses the first, and uses the last file's context.
  const configs = loaded.map(({ config }) => config);
  const contexts = configs.flatMap((one) => one.contexts);
  const where = files.join(', ');
  const name = choice.context ?? configs.find((one) => one.currentContext)?.currentContext;
  const names = contexts.map((one) => one.name).join(', ') || 'none';
  if (!name) throw unusable(`${where}: no current context; choose one with --context (${names})`);
  const context = contexts.find((one) => one.name === name);
  if (!context) throw unusable(`${where}: there is no context ${name}; choose one of ${names}`);
  const cluster = configs.flatMap((one) => one.clusters).find((one) => one.name === context.cluster);
  if (!cluster) {
    const missing = `names cluster ${context.cluster}, which is missing or has no server`;
    throw unusable(`${where}: context ${name} ${missing}`);
  }
  const found = configs.flatMap((one) => one.users).find((one) => one.name === context.user);
  if (!found && context.user) {
    throw unusable(`${where}: context ${name} names user ${context.user}, which is missing`);
  }
  const raw = loaded.flatMap(({ users }) => users).find((one) => one.name === context.user);
  // Without a user, client-node would leave out the cluster's CA too.
  const itsUser = found ?? { name: 'anonymous' };
  checkSupport(name, cluster, itsUser, raw?.given ?? {});
  checkFiles(name, cluster, itsUser);
  return { name, namespace: context.namespace, config: configOf(cluster, itsUser, raw) };
}

function load(path: string): Loaded {
  let document: unknown;
  try {
    document = parse(readInput(path, LARGEST).toString());
  } catch (error) {
    const why = (error as Error).message.split('\n')[0];
    throw unusable(`cannot read the kubeconfig ${path}: ${why}`, { cause: error });
  }
  const found = file.safeParse(document ?? {}, { jitless: true });
  if (!found.success) {
    const [issue] = found.error.issues;
    throw unusable(`${path} is not a kubeconfig: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`);
  }
  const directory = dirname(resolve(path));
  const config = new KubeConfig();
  const { clusters, contexts, users: ofFile, 'current-context': currentContext } = found.data;
  // Incomplete entries elsewhere in the file do not affect the selected context. This is KubeConfig.loadFromString
  // without a second YAML parser.
  const filter = { onInvalidEntry: 'filter' } as const;
  config.loadFromOptions({
    clusters: newClusters(clusters, filter),
    contexts: newContexts(contexts, filter),
    users: newUsers(ofFile, filter),
    currentContext,
  });
  config.makePathsAbsolute(directory);
  const users = (ofFile ?? []).map(({ name, user: given }) => ({ name, directory, given: given ?? {} }));
  return { config, users };
}

function checkSupport(name: string, cluster: Cluster, { authProvider, username }: User, given: object): void {
  if (!/^https?:\/\/[^/]/.test(cluster.server)) {
    throw unusable(`context ${name}: the server ${JSON.stringify(cluster.server)} is not a URL`);
  }
  const refuse = (what: string, instead: string) => unusable(`context ${name}: ${what} is not supported; ${instead}`);
  if (cluster.proxyUrl !== undefined) throw refuse('proxy-url', 'use a tunnel, and set server to its address');
  if (authProvider) throw refuse(`auth-provider ${authProvider.name}`, 'use its exec plugin');
  if (username) throw refuse('a user name with password', 'use a token or a certificate');
  const beyond = ['as-uid', 'as-groups', 'as-user-extra'].find((key) => key in given);
  if (beyond !== undefined) throw refuse(beyond, 'impersonate only by user name (as)');
}

/**
 * client-node reads these files for each request, without a limit.
 * @throws CliError if one is missing, is a device or a pipe, or is too large
 */
function checkFiles(name: string, { caData, caFile }: Cluster, user: User): void {
  const files = {
    'certificate-authority': caData ? undefined : caFile,
    'client-certificate': user.certData ? undefined : user.certFile,
    'client-key': user.keyData ? undefined : user.keyFile,
  };
  for (const [field, path] of Object.entries(files)) {
    if (!path) continue;
    const refuse = (why: string) => unusable(`context ${name}: cannot read ${field} ${path}: ${why}`);
    let found: Stats;
    try {
      found = statSync(path);
    } catch (error) {
      throw refuse((error as Error).message);
    }
    if (!found.isFile()) throw refuse('it is not a regular file');
    if (found.size > LARGEST_CREDENTIAL) throw refuse(`it is larger than ${LARGEST_CREDENTIAL} bytes`);
  }
}

/** @param raw that user in the kubeconfig */
function configOf(cluster: Cluster, itsUser: User, raw: Loaded['users'][number] | undefined): KubeConfig {
  const { caData, caFile, ...rest } = cluster;
  // Embedded data takes precedence over a file; client-node prefers the file.
  const ca = caData ? { caData } : caFile ? { caFile } : {};
  // Over plain HTTP there is nothing to verify, and client-node refuses it otherwise.
  const skipTLSVerify = cluster.skipTLSVerify || cluster.server.startsWith('http:');
  const itsCluster = { ...rest, ...ca, skipTLSVerify };
  const { name, certData, certFile, keyData, keyFile, token, impersonateUser } = itsUser;
  const authenticator = authenticatorOf(raw, itsCluster);
  const config = new KubeConfig();
  if (authenticator !== undefined) config.addAuthenticator(authenticator);
  config.loadFromClusterAndUser(itsCluster, {
    name,
    ...(certData ? { certData } : certFile ? { certFile } : {}),
    ...(keyData ? { keyData } : keyFile ? { keyFile } : {}),
    ...(impersonateUser ? { impersonateUser } : {}),
    ...(authenticator === undefined ? (token ? { token } : {}) : { authProvider: { name: OWN } }),
  });
  return config;
}

/** The auth-provider of users with one of our authenticators. */
const OWN = 'plumbline';

/** client-node's own authenticators do not check plugins (exec-credential.ts) and do not support `tokenFile`. */
function authenticatorOf(raw: Loaded['users'][number] | undefined, cluster: Cluster): Authenticator | undefined {
  const { exec, tokenFile } = raw?.given ?? {};
  const isAuthProvider = (one: User) => one.authProvider?.name === OWN;
  if (exec) return { isAuthProvider, applyAuthentication: createExecAuthenticator(exec, cluster) };
  if (raw === undefined || tokenFile === undefined) return undefined;
  const path = resolve(raw.directory, tokenFile);
  return {
    isAuthProvider,
    async applyAuthentication(_, options) {
      const token = readInput(path, LARGEST_CREDENTIAL).toString().trim();
      options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
    },
  };
}

function unusable(message: string, options?: ErrorOptions): CliError {
  return new CliError(EXIT.unreachable, message, options);
}
