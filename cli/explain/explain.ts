import { type KubeClient, KubeError } from '../../kube/client.ts';
import { type NodeTopology, nodeTopology } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { isWholeCores } from '../../model/host.ts';
import { PREFERRED_EFFECT } from '../../model/networks/interfaces.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import type { NodeStateFacts, VmFacts } from '../../model/vm-state/facts.ts';
import type { NodeGroup } from '../../model/vm-state/node-groups.ts';
import { type VmState, vmState } from '../../model/vm-state/state.ts';
import { readScheduler } from '../extender/election.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { hostsOf } from '../support/hosts.ts';
import { NODE_TOPOLOGIES_PATH, readAgentLeases, readOne } from '../support/lists.ts';
import { type Asks, asksOf } from './asks.ts';
import { type ExplainedPod, explainedNode, timeOf } from './objects.ts';
import type { ExtenderChoice } from './opinions.ts';
import { searchNodes } from './search.ts';
import type { Subject } from './subject.ts';
import { eventFacts, instanceFacts, isVerified, kindOf, machineFacts, nodeFacts, rejectionFacts } from './vm-facts.ts';

/** Limits for Events: older ones and repetitions say nothing about the current state. */
const EVENTS = 4;
const RECENT = 3600;

/**
 * Explains why a VM or pod does not run, or where it runs.
 * @param now milliseconds since 1970
 * @throws CliError, KubeError
 */
export async function explain(
  cluster: ClusterAccess,
  subject: Subject,
  choice: ExtenderChoice,
  now: number,
): Promise<Explanation> {
  const { kind, namespace, name, pod } = subject;
  const scheduler = pod === undefined ? undefined : await readScheduler(cluster.client, now);
  const own: VmFacts = { ...factsOf(subject, now), scheduler };
  const search = isWaiting(own) && pod !== undefined ? await searchNodes(cluster, pod, choice, now) : undefined;
  const at = pod?.spec.nodeName ?? '';
  const node = pod === undefined || at === '' ? undefined : await readNode(cluster.client, pod, at, now);
  const state = vmState({ ...own, search, node });
  const asks = pod && asksOf(pod);
  const scheduled = pod?.status?.conditions.find(({ type }) => type === 'PodScheduled');
  return {
    ...state,
    kind,
    namespace,
    name,
    pod: pod?.metadata.name,
    node: at === '' ? undefined : at,
    placement: node && placementOf(node),
    asks,
    scheduler: search !== undefined && scheduled?.status === 'False' ? scheduled.message : undefined,
    source: search?.source,
    nodes: search?.groups ?? [],
    notes: [...(search?.notes ?? []), ...preferenceNotes(asks)],
    events: recentEvents(subject, now),
  };
}

function placementOf({ host, assigned }: NodeStateFacts): Placement | undefined {
  if (host === undefined || assigned.length === 0) return undefined;
  const cpus = unionOf(assigned.map((list) => CpuSet.parse(list)));
  const { host: hardware } = host;
  return {
    cpus: cpus.toArray(),
    numaNodes: [...cellsTouched(hardware, cpus)],
    wholeCores: isWholeCores(hardware, cpus),
  };
}

function preferenceNotes(asks: Asks | undefined): string[] {
  return asks?.networks.some(({ affinity }) => affinity === 'preferred') ? [PREFERRED_EFFECT] : [];
}

/** The facts in the objects of the subject, without nodes and schedulers. */
export function factsOf(subject: Subject, now: number): VmFacts {
  const { kind, namespace, name, vm, vmi, pod, events, rejections } = subject;
  const isPod = kind === 'pod' && vmi === undefined;
  return {
    namespace,
    name: vmi?.metadata.name ?? name,
    kind: isPod ? 'pod' : kindOf(vmi, vm),
    machine: vm && machineFacts(vm, now),
    instance: vmi && instanceFacts(vmi),
    rejection: rejectionFacts(rejections, now),
    annotations: vmi?.metadata.annotations ?? vm?.spec.template?.metadata?.annotations,
    pod,
    events: eventFacts(events, pod?.metadata.uid),
  };
}

/** Whether it waits for a node and the scheduler has not chosen one. */
function isWaiting(facts: VmFacts): boolean {
  return vmState(facts).state === 'unscheduled';
}

async function readNode(client: KubeClient, pod: ExplainedPod, at: string, now: number): Promise<NodeStateFacts> {
  const [node, topology, agents] = await Promise.all([
    readOne(client, `/api/v1/nodes/${encodeURIComponent(at)}`, explainedNode).catch(unlessForbidden),
    topologyOf(client, at),
    readAgentLeases(client, now),
  ]);
  const reported = topology && hostsOf([topology]).hosts[0];
  return nodeFacts(pod, node, reported, agents?.silent.has(at) === true);
}

/** Undefined if the node, or the whole cluster, has no report. */
function topologyOf(client: KubeClient, node: string): Promise<NodeTopology | undefined> {
  return readOne(client, `${NODE_TOPOLOGIES_PATH}/${encodeURIComponent(node)}`, nodeTopology);
}

function unlessForbidden(error: unknown): undefined {
  if (error instanceof KubeError && error.status === 403) return undefined;
  throw error;
}

function recentEvents({ events }: Subject, now: number): Explanation['events'] {
  const seen = new Set<string>();
  const explained: ExplainedEvent[] = [];
  for (const event of events) {
    const { type, reason, message, source, reportingComponent } = event;
    const ago = Math.max(0, Math.round((now - timeOf(event)) / 1000));
    // The message of kube-scheduler is printed above.
    const isKnown = reason === 'FailedScheduling' || reason === 'Scheduled' || seen.has(`${reason} ${message}`);
    if (isKnown || ago > RECENT || (type !== 'Warning' && explained.length > 1)) continue;
    seen.add(`${reason} ${message}`);
    const component = source?.component || reportingComponent || 'unknown';
    explained.push({ reason: reason ?? '', message: message ?? '', ago, component, verified: isVerified(event) });
    if (explained.length === EVENTS) break;
  }
  return explained;
}

export interface Placement {
  readonly cpus: readonly number[];
  readonly numaNodes: readonly number[];
  readonly wholeCores: boolean;
}

/** The complete answer. */
export interface Explanation extends VmState {
  readonly kind: 'pod' | 'vm';
  readonly namespace: string;
  readonly name: string;
  /** The pod that this explains; for a VM, its launcher. */
  readonly pod?: string | undefined;
  readonly node?: string | undefined;
  /** Its dedicated CPUs, as its node reports them. */
  readonly placement?: Placement | undefined;
  readonly asks?: Asks | undefined;
  /** The last message of kube-scheduler. */
  readonly scheduler?: string | undefined;
  /** The source of the answer for each node; absent if no node was checked. */
  readonly source?: 'extender' | 'reports' | undefined;
  readonly nodes: readonly NodeGroup[];
  /** Limits of this answer. */
  readonly notes: readonly string[];
  /** Events of the last minutes, newest first. */
  readonly events: readonly ExplainedEvent[];
}

export interface ExplainedEvent {
  readonly reason: string;
  readonly message: string;
  /** Seconds. */
  readonly ago: number;
  /** The component that it names as its author. */
  readonly component: string;
  /** Whether a policy protects that name. Otherwise any user who may create Events in the namespace can have written it. */
  readonly verified: boolean;
}
