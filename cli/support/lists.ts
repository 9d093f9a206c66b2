import * as z from 'zod';
import { hostsOf, type ReportedHost } from '../../diagnosis/hosts.ts';
import { isNotFound, type KubeClient, KubeError, type RequestOptions } from '../../kube/client.ts';
import { leasesPath, nodeLease } from '../../kube/cluster-view/leases.ts';
import { NODE_TOPOLOGIES_PATH } from '../../kube/cluster-view/node-topologies.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { type NodeTopology, nodeTopology } from '../../kube/node-topology.ts';
import { lease, objectMeta } from '../../kube/resources.ts';
import { leaseSeconds, parseMicroTime } from '../../model/lease/timing.ts';
import { AGENT_LEASE_PREFIX, NAMESPACE, WEBHOOK, WEBHOOK_REQUIRED } from '../../model/names.ts';
import { CliError, EXIT } from './exit-status.ts';
import { MUTATING } from './kinds.ts';
import { isGated } from './objects.ts';

/** Objects in a page: large clusters need pages, so that no response takes long. */
const PAGE_OBJECTS = 500;

/** Ignores objects that do not match: one malformed object must not prevent an answer. @throws KubeError */
export async function readAll<Item>(
  client: Pick<KubeClient, 'get'>,
  path: string,
  schema: z.ZodType<Item>,
  query: RequestOptions['query'] = {},
): Promise<Item[]> {
  const objects: Item[] = [];
  try {
    for await (const { items } of pagesOf({ client, path, query, page: PAGE_OBJECTS })) {
      for (const item of items ?? []) {
        const parsed = schema.safeParse(item);
        if (parsed.success) objects.push(parsed.data);
      }
    }
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    const message = `${path}: the answer is not a list; check that the server in the kubeconfig is an API server`;
    throw new KubeError(0, 'BadAnswer', message);
  }
  return objects;
}

/** The same, but empty if the kind is not installed or the user may not read it. @throws KubeError for anything else */
export async function readIfAllowed<Item>(...args: Parameters<typeof readAll<Item>>): Promise<Item[] | undefined> {
  return (await tolerant(readAll(...args))).value;
}

/** For `catch` of a request whose result is optional. @throws any other error */
export function undefinedIfForbidden(error: unknown): undefined {
  if (error instanceof KubeError && error.status === 403) return undefined;
  throw error;
}

/** Of an object of which only the name or the labels count. */
export const named = z.object({ metadata: objectMeta });

/** One object, or undefined if it does not exist. @throws KubeError */
export async function readOne<Item>(
  client: Pick<KubeClient, 'get'>,
  path: string,
  schema: z.ZodType<Item>,
): Promise<Item | undefined> {
  try {
    const parsed = schema.safeParse(await client.get(path));
    if (parsed.success) return parsed.data;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  throw new KubeError(0, 'BadAnswer', `${path}: the object does not have the expected form`);
}

/** @throws CliError if Plumbline is not installed; KubeError */
export async function readTopologies(client: Pick<KubeClient, 'get'>): Promise<NodeTopology[]> {
  try {
    return await readAll(client, NODE_TOPOLOGIES_PATH, nodeTopology);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw notInstalled(error);
  }
}

/** The report of one node; undefined if it, or the whole cluster, has no usable report. @throws KubeError */
export async function readHost(client: Pick<KubeClient, 'get'>, node: string): Promise<ReportedHost | undefined> {
  const topology = await readOne(client, `${NODE_TOPOLOGIES_PATH}/${encodeURIComponent(node)}`, nodeTopology);
  return topology && hostsOf([topology]).hosts[0];
}

export function notInstalled(cause: unknown): CliError {
  const message =
    'the cluster has no NodeTopology resource: Plumbline is not installed there, or its definition was deleted: plumbline doctor installed';
  return new CliError(EXIT.unreachable, message, { cause });
}

/** @throws CliError if no agent has reported anything */
export function assertReported(topologies: readonly NodeTopology[]): void {
  if (topologies.some(({ status }) => status !== undefined)) return;
  const message =
    'no node reports its topology; check that the agents run ' +
    '(kubectl -n plumbline-system get pods -l app.kubernetes.io/name=plumbline-node-agent)';
  throw new CliError(EXIT.unreachable, message);
}

/** By node. `ages`: seconds since the last renewal. */
export interface AgentLeases {
  readonly ages: ReadonlyMap<string, number>;
  readonly silent: ReadonlySet<string>;
}

/** Expiry by the API server's clock, as commands read once. @returns undefined if forbidden @throws KubeError */
export async function readAgentLeases(client: KubeClient, now: number): Promise<AgentLeases | undefined> {
  const leases = await readIfAllowed(client, leasesPath(NAMESPACE), lease);
  if (leases === undefined) return undefined;
  const serverNow = now + (client.clockOffset?.() ?? 0);
  const ages = new Map<string, number>();
  const silent = new Set<string>();
  for (const object of leases) {
    const { node, renewTime, duration } = nodeLease(object, AGENT_LEASE_PREFIX) ?? {};
    const renewed = renewTime === undefined ? undefined : parseMicroTime(renewTime);
    if (node === undefined || renewed === undefined) continue;
    const age = (serverNow - Number(renewed / 1000n)) / 1000;
    ages.set(node, age);
    if (age >= leaseSeconds(duration)) silent.add(node);
  }
  return { ages, silent };
}

const ROLE_BINDING = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings/${WEBHOOK_REQUIRED}`;

/** Why the API server does not call the mutating webhook; undefined if it does, or that may not be read. @throws KubeError */
export async function readWebhooksOff(client: KubeClient): Promise<string | undefined> {
  const [configurations, isThere] = await Promise.all([
    readIfAllowed(client, ...MUTATING),
    readOne(client, ROLE_BINDING, named).then((binding) => binding !== undefined, undefinedIfForbidden),
  ]);
  if (configurations === undefined) return undefined;
  const ourConfiguration = configurations.find(({ metadata }) => metadata.name === WEBHOOK);
  if (ourConfiguration === undefined) return 'without its MutatingWebhookConfiguration';
  if (isThere !== false || !ourConfiguration.webhooks.some(isGated)) return undefined;
  return `switched off: there is no RoleBinding ${WEBHOOK_REQUIRED} in ${NAMESPACE}`;
}

export type Read<T> =
  | { readonly value: T; readonly missing?: undefined }
  | { readonly value?: undefined; readonly missing: 'absent' | 'forbidden' };

export async function settled<T extends Record<string, Promise<unknown>>>(
  parts: T,
): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  const entries = Object.entries(parts).map(async ([name, part]) => [name, await part] as const);
  return Object.fromEntries(await Promise.all(entries)) as { [K in keyof T]: Awaited<T[K]> };
}

/** Missing permissions and missing objects are results; any other error ends the command. */
export async function tolerant<T>(reading: Promise<T | undefined>): Promise<Read<T>> {
  try {
    const value = await reading;
    return value === undefined ? { missing: 'absent' } : { value };
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return { missing: 'forbidden' };
    if (error instanceof KubeError && error.status === 404) return { missing: 'absent' };
    throw error;
  }
}
