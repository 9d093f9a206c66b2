import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import { CliError, EXIT } from './exit-status.ts';

const text = z.string().min(1).optional();
const env = z.array(z.object({ name: z.string(), value: z.string() })).nullish();

export const execPlugin = z.object({
  apiVersion: z.string(),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env,
  installHint: z.string().nullish(),
  provideClusterInfo: z.boolean().nullish(),
});
export type ExecPlugin = z.infer<typeof execPlugin>;

const cluster = z.object({
  server: z.string(),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': text,
  'proxy-url': text,
});
const user = z.object({
  token: text,
  tokenFile: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  username: text,
  exec: execPlugin.nullish(),
  'auth-provider': z.object({ name: z.string() }).nullish(),
});
const context = z.object({ cluster: z.string(), user: z.string().default(''), namespace: text });

const file = z.object({
  'current-context': z.string().nullish(),
  contexts: z.array(z.object({ name: z.string(), context })).nullish(),
  clusters: z.array(z.object({ name: z.string(), cluster })).nullish(),
  users: z.array(z.object({ name: z.string(), user: user.nullish() })).nullish(),
});

/** The context that counts, with all that it names. File names in it are absolute. */
export interface ChosenContext {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly cluster: z.infer<typeof cluster>;
  readonly user: z.infer<typeof user>;
}

export interface KubeconfigChoice {
  /** --kubeconfig */
  readonly kubeconfig?: string | undefined;
  /** --context */
  readonly context?: string | undefined;
}

/**
 * The files that kubectl would read: --kubeconfig, else those of KUBECONFIG, else ~/.kube/config. Of KUBECONFIG's
 * files those that are missing are passed over, as kubectl does.
 */
export function kubeconfigFiles({ kubeconfig }: KubeconfigChoice): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (process.env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
  return (listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')]).filter(existsSync);
}

/**
 * Reads the context that counts; the first file that says something wins. Undefined if there is no file at all.
 * @throws CliError if a file is none, or names what it does not have
 */
export function chooseContext(choice: KubeconfigChoice): ChosenContext | undefined {
  const files = kubeconfigFiles(choice);
  if (files.length === 0) return undefined;
  const parsed = files.map((path) => readKubeconfig(path));
  const where = files.join(', ');
  const name = choice.context ?? parsed.find((one) => one['current-context'])?.['current-context'];
  const contexts = parsed.flatMap((one) => one.contexts ?? []);
  const names = contexts.map((one) => one.name).join(', ') || 'none';
  if (!name) throw unusable(`${where}: no context is chosen; give --context (there are: ${names})`);
  const found = contexts.find((one) => one.name === name)?.context;
  if (!found) throw unusable(`${where}: there is no context ${name} (there are: ${names})`);
  const itsCluster = parsed.flatMap((one) => one.clusters ?? []).find((one) => one.name === found.cluster)?.cluster;
  if (!itsCluster) throw unusable(`${where}: context ${name} names cluster ${found.cluster}, which is not there`);
  const itsUser = parsed.flatMap((one) => one.users ?? []).find((one) => one.name === found.user)?.user;
  if (!itsUser && found.user !== '') {
    throw unusable(`${where}: context ${name} names user ${found.user}, which is not there`);
  }
  return { name, namespace: found.namespace, cluster: itsCluster, user: itsUser ?? {} };
}

function readKubeconfig(path: string): z.infer<typeof file> {
  let document: unknown;
  try {
    document = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const why = (error as Error).message.split('\n')[0];
    throw unusable(`cannot read the kubeconfig ${path}: ${why}`, { cause: error });
  }
  const found = file.safeParse(document ?? {});
  if (!found.success) {
    const [issue] = found.error.issues;
    throw unusable(`${path} is no kubeconfig: ${issue?.path.join('.') || 'the whole'}: ${issue?.message}`);
  }
  return absolutePaths(found.data, dirname(resolve(path)));
}

/** Relative file names are meant from the kubeconfig that they stand in. */
function absolutePaths(config: z.infer<typeof file>, directory: string): z.infer<typeof file> {
  const from = <T extends object>(object: T, keys: readonly (keyof T)[]): T => {
    const copy = { ...object };
    for (const key of keys) {
      const value = copy[key];
      if (typeof value === 'string') copy[key] = resolve(directory, value) as T[keyof T];
    }
    return copy;
  };
  return {
    ...config,
    clusters: config.clusters?.map((one) => ({ ...one, cluster: from(one.cluster, ['certificate-authority']) })),
    users: config.users?.map((one) => ({
      ...one,
      user: one.user && from(one.user, ['tokenFile', 'client-certificate', 'client-key']),
    })),
  };
}

function unusable(message: string, options?: ErrorOptions): CliError {
  return new CliError(EXIT.unreachable, message, options);
}
