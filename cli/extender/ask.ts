import { KubeError } from '../../kube/errors.ts';
import { NAMESPACE, SCHEDULER, SERVICE } from '../../model/names.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { kubeLine } from '../support/errors.ts';
import { type Election, readElection } from './election.ts';

/** The extender's response, or why there is none: text that follows `because`. */
export type Asked =
  | { readonly answer: unknown }
  | { readonly missing: 'absent' | 'forbidden' | 'silent'; readonly why: string };

type Query = Readonly<Record<string, string>>;
type Cluster = Pick<ClusterAccess, 'client' | 'config'>;

/** The API server's proxy path of the Service of an extender outside of kube-scheduler's pod. */
const SERVICE_PROXY = `/api/v1/namespaces/${NAMESPACE}/services/https:plumbline-scheduler-plugin:https/proxy`;
/** The loopback port of /explain, both in kube-scheduler's pod and behind a Service. */
const LOOPBACK_PORT = 8082;
/** Timeout in seconds: it usually responds in a few hundred milliseconds, and there is a fallback. */
const DEADLINE = 5;

const denied = (what: string) =>
  ({ missing: 'forbidden', why: `you may not reach the extender (${what} in ${NAMESPACE})` }) as const;

/**
 * Queries `GET /explain` through the API server, by a port-forward to the leader's pod: that of Plumbline's
 * kube-scheduler, else of the extenders behind a Service. If the latter accept every caller, the Service's proxy works
 * as well.
 * @throws KubeError if the API server does not respond
 */
export async function askInCluster(cluster: Cluster, query: Query): Promise<Asked> {
  let first: Asked | undefined;
  for (const name of [SCHEDULER, SERVICE]) {
    const election = await readElection(cluster.client, name, Date.now()).catch(unlessForbidden);
    const asked = election === 'forbidden' ? denied('leases') : await askLeader(cluster, name, election, query);
    const isFinal = asked !== undefined && 'missing' in asked && asked.missing !== 'absent' && name === SCHEDULER;
    if (asked !== undefined && ('answer' in asked || (isFinal && election !== 'forbidden'))) return asked;
    // A Lease stays after its Deployment is deleted, so the cluster may have the Service now.
    first ??= asked;
  }
  const last = await askService(cluster, query);
  return 'missing' in last && last.missing === 'absent' ? (first ?? last) : last;
}

async function askLeader(
  { config }: Cluster,
  name: string,
  election: Election | undefined,
  query: Query,
): Promise<Asked | undefined> {
  if (election === undefined) return undefined;
  const { leader: pod } = election;
  if (pod === undefined) return { missing: 'absent', why: `no replica of ${name} is the leader` };
  const [{ openPortForward }, { getOver }] = await Promise.all([import('./port-forward.ts'), import('./http-over.ts')]);
  const signal = AbortSignal.timeout(DEADLINE * 1000);
  try {
    const stream = await openPortForward(config, { namespace: NAMESPACE, pod, port: LOOPBACK_PORT }, signal);
    try {
      const { status, text } = await getOver(stream, `/explain?${new URLSearchParams(query)}`);
      if (status === 200) return { answer: JSON.parse(text) };
      return { missing: 'silent', why: `the extender in pod ${pod} did not answer (${firstLine(text) || status})` };
    } finally {
      stream.destroy();
    }
  } catch (error) {
    return whyNotForwarded(error, name, pod, signal);
  }
}

function whyNotForwarded(error: unknown, name: string, pod: string, signal: AbortSignal): Asked {
  const { status = 0, message } = error as Error & { readonly status?: number };
  if (status === 403) return denied('pods/portforward');
  if (status === 404) return { missing: 'absent', why: `the pod ${pod}, which leads ${name}, is gone` };
  const said =
    status >= 500
      ? `${status}: check that the API server reaches the kubelet of that node`
      : signal.aborted
        ? 'no answer in time'
        : message;
  return { missing: 'silent', why: `the extender in pod ${pod} did not answer (${firstLine(said)})` };
}

async function askService({ client }: Cluster, query: Query): Promise<Asked> {
  try {
    return { answer: await client.get(`${SERVICE_PROXY}/explain`, { query, timeout: DEADLINE }) };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    const { status, message } = error;
    if (status === 403) return denied('services/proxy');
    if (status === 404) return { missing: 'absent', why: 'the API server does not reach the extender' };
    if (status === 503) {
      return { missing: 'silent', why: 'the extender does not answer (no active replica behind its Service)' };
    }
    const said = status === 0 ? kubeLine(error) : message;
    return { missing: 'silent', why: `the extender did not answer (${said})` };
  }
}

function unlessForbidden(error: unknown): 'forbidden' {
  if (error instanceof KubeError && error.status === 403) return 'forbidden';
  throw error;
}

const firstLine = (text: string) => text.trim().split('\n')[0] ?? '';
