import { type IncomingMessage, request } from 'node:http';
import type { SchedulerFacts } from '../../diagnosis/facts.ts';
import { hasReadyReplica } from '../../diagnosis/objects.ts';
import { schedulerFacts } from '../../diagnosis/waiting.ts';
import { readText } from '../../kube/calls.ts';
import type { KubeClient } from '../../kube/client.ts';
import { hostOfHolder, leasesPath } from '../../kube/cluster-view/leases.ts';
import { lease } from '../../kube/resources.ts';
import { NAMESPACE, SCHEDULER, SERVICE } from '../../model/names.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { ArgumentError, CliError, EXIT } from '../support/exit-status.ts';
import { DEPLOYMENTS } from '../support/kinds.ts';
import { readIfAllowed, readOne, tolerant, undefinedIfForbidden } from '../support/lists.ts';

/** The extender's response, or why there is none: text that follows `because`. */
type ExtenderResponse =
  | { readonly answer: unknown }
  | { readonly missing: 'absent' | 'forbidden'; readonly why: string }
  | SilentExtender;

/** The pod of the leader exists, and no extender answers in it. `failure`: the reason alone. */
export interface SilentExtender {
  readonly missing: 'silent';
  readonly why: string;
  readonly failure: string;
}

type Cluster = Pick<ClusterAccess, 'client' | 'config' | 'requestTimeout'>;

/** The pod of the extender has the leader's name after `prefix`. */
interface ExtenderLocation {
  readonly namespace: string;
  readonly lease: string;
  readonly prefix: string;
  readonly port: number;
}

const SIDECAR: ExtenderLocation = { namespace: NAMESPACE, lease: SCHEDULER, prefix: '', port: 8082 };
/** The cluster's own kube-scheduler, with the extender as a static pod on the same host: manifests/scheduler/loopback. */
const LOOPBACK: ExtenderLocation = {
  namespace: 'kube-system',
  lease: 'kube-scheduler',
  prefix: `${SERVICE}-`,
  port: 8091,
};
const denied = (what: string, namespace: string) =>
  ({ missing: 'forbidden', why: `you may not reach the extender (${what} in ${namespace})` }) as const;

/** By a port-forward to the extender of the leading kube-scheduler: ours, else the cluster's. @throws KubeError */
export async function askInCluster(cluster: Cluster, query: Record<string, string>): Promise<ExtenderResponse> {
  const sidecar = await askLeader(cluster, SIDECAR, query);
  if (sidecar !== undefined && !('missing' in sidecar && sidecar.missing === 'absent')) return sidecar;
  // A Lease stays after its Deployment is deleted, so the cluster may have the other place now.
  const loopback = await askLeader(cluster, LOOPBACK, query);
  const isThere = loopback !== undefined && !('missing' in loopback && loopback.missing !== 'silent');
  if (isThere) return loopback;
  return sidecar ?? { missing: 'absent', why: `there is no ${SCHEDULER}, and no extender next to kube-scheduler` };
}

/** @returns undefined if there is no such Lease */
async function askLeader(
  cluster: Cluster,
  { namespace, lease, prefix, port }: ExtenderLocation,
  query: Record<string, string>,
): Promise<ExtenderResponse | undefined> {
  const { missing, value } = await tolerant(readElection(cluster.client, { namespace, lease }, Date.now()));
  if (missing === 'forbidden') return denied('leases', namespace);
  if (value === undefined) return undefined;
  if (value.leader === undefined) return { missing: 'absent', why: `no replica of ${lease} is the leader` };
  const target = { namespace, pod: prefix + value.leader, port };
  const { getFromPod, forwardFailure } = await import('./port-forward.ts');
  const silent = (failure: string): SilentExtender => {
    return { missing: 'silent', why: `the extender in pod ${target.pod} did not answer (${failure})`, failure };
  };
  try {
    const path = `/explain?${new URLSearchParams(query)}`;
    const { status, text } = await getFromPod(cluster.config, target, path, cluster);
    return status === 200 ? { answer: JSON.parse(text) } : silent(text.trim().split('\n')[0] || `${status}`);
  } catch (error) {
    const { status, text } = forwardFailure(error);
    if (status === 403) return denied('pods/portforward', target.namespace);
    if (status === 404) return { missing: 'absent', why: `the pod ${target.pod}, which leads ${lease}, is gone` };
    return silent(text);
  }
}

/** It usually responds in a few hundred milliseconds. */
const DEADLINE_SECONDS = 5;

/** @param extender address from the user @param pod namespace/name @throws CliError if malformed or no answer */
export async function askAddress(
  extender: string,
  pod: string,
  requestTimeout: number = DEADLINE_SECONDS,
): Promise<unknown> {
  const url = explainUrl(extender);
  url.searchParams.set('pod', pod);
  const failed = (why: string) => new CliError(EXIT.unreachable, `cannot ask the extender at ${url.origin}: ${why}`);
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { signal: AbortSignal.timeout(requestTimeout * 1000) }, resolve)
        .on('error', reject)
        .end();
    });
    const answer = await readText(response);
    if (response.statusCode !== 200) throw failed(answer.trim().split('\n')[0] || `${response.statusCode}`);
    return JSON.parse(answer) as unknown;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw failed(error instanceof SyntaxError ? 'the answer is not JSON' : (error as Error).message);
  }
}

/** The URL of /explain. @throws CliError if the text is not the address of an extender */
export function explainUrl(extender: string): URL {
  const text = `${extender.replace(/\/+$/, '')}/explain`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:') return url;
  throw new ArgumentError(
    `--extender '${extender}': expected a URL that begins with http://, such as http://localhost:8082`,
  );
}

/** Holders renew every 1 or 2 s; the rest is a margin for different clocks. */
const OVERDUE_SECONDS = 60;

export const SCHEDULER_LEASE = { namespace: NAMESPACE, lease: SCHEDULER } as const;

interface Election {
  /** Host name of the leader, which is the name of its pod or node; undefined: the Lease is released. */
  readonly leader: string | undefined;
  /** Seconds since the last renewal, by the API server's clock; undefined: never renewed. */
  readonly age: number | undefined;
}

const HOST_NAME = /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

/** @param now milliseconds since 1970 @returns undefined without a Lease @throws KubeError */
export async function readElection(
  client: Pick<KubeClient, 'get' | 'clockOffset'>,
  { namespace, lease: name }: { readonly namespace: string; readonly lease: string },
  now: number,
): Promise<Election | undefined> {
  const path = `${leasesPath(namespace)}/${name}`;
  const object = await readOne(client, path, lease);
  if (object === undefined) return undefined;
  const { spec } = object;
  const host = hostOfHolder(spec?.holderIdentity ?? '');
  const renewed = Date.parse(spec?.renewTime ?? '');
  return {
    leader: HOST_NAME.test(host) ? host : undefined,
    age: Number.isNaN(renewed) ? undefined : (now + (client.clockOffset?.() ?? 0) - renewed) / 1000,
  };
}

/** Why there is no leader; undefined: there is one. */
export function leaderless(name: string, election: Election | undefined): string | undefined {
  if (election?.leader === undefined) return `no replica of ${name} is the leader`;
  const { age } = election;
  if (age === undefined || age <= OVERDUE_SECONDS) return undefined;
  return `the Lease ${name} was last renewed ${Math.round(age)} s ago`;
}

/** Unknown is what the user may not read. @param now milliseconds since 1970 @throws KubeError */
export async function readScheduler(client: KubeClient, now: number): Promise<SchedulerFacts> {
  const [election, isReady] = await Promise.all([
    readElection(client, SCHEDULER_LEASE, now).then((value) => ({ value }), undefinedIfForbidden),
    readSchedulerReadiness(client),
  ]);
  return schedulerFacts(election && electionFacts(election.value), isReady) ?? {};
}

/** Whether a replica of Plumbline's own scheduler is ready; undefined if there is none or it may not be read. */
async function readSchedulerReadiness(client: KubeClient): Promise<boolean | undefined> {
  const deployments = await readIfAllowed(client, ...DEPLOYMENTS);
  const ourScheduler = deployments?.find(({ metadata }) => metadata.name === SCHEDULER);
  return ourScheduler && hasReadyReplica(ourScheduler);
}

export function electionFacts(election: Election | undefined): SchedulerFacts {
  const away = leaderless(SCHEDULER, election);
  return { leads: away === undefined, away };
}
