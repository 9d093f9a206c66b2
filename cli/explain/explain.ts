import { asksOf } from '../../diagnosis/asks.ts';
import type { NodeStateFacts, VmFacts } from '../../diagnosis/facts.ts';
import { deadDpu, type ExplainedPod, explainedNode, timeOf } from '../../diagnosis/objects.ts';
import { vmState } from '../../diagnosis/state.ts';
import {
  eventFacts,
  instanceFacts,
  isVerified,
  kindOf,
  machineFacts,
  nodeFacts,
  rejectionFacts,
} from '../../diagnosis/vm-facts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { isWholeCores } from '../../model/host.ts';
import { PREFERRED_EFFECT } from '../../model/networks/interfaces.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import { readScheduler } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { readAgentLeases, readHost, readOne, undefinedIfForbidden } from '../support/lists.ts';
import { type ExtenderChoice, searchNodes } from './search.ts';
import type { Subject } from './subject.ts';

/** Limits for Events: older ones and repetitions say nothing about the current state. */
const MAX_EVENTS = 4;
const RECENT_SECONDS = 3600;

export type Explanation = Awaited<ReturnType<typeof explain>>;
export type ExplainedEvent = ReturnType<typeof recentEvents>[number];

/** @param now milliseconds since 1970 @throws CliError, KubeError */
export async function explain(cluster: ClusterAccess, subject: Subject, choice: ExtenderChoice, now: number) {
  const { kind, namespace, name, pod } = subject;
  const facts = factsOf(subject, now);
  const scheduler = pod === undefined ? undefined : await readScheduler(cluster.client, now);
  const own: VmFacts = { ...facts, scheduler };
  const isWaiting = pod !== undefined && vmState(own).state === 'unscheduled';
  const search = isWaiting ? await searchNodes(cluster, pod, choice, now) : undefined;
  const at = pod?.spec.nodeName ?? '';
  const node = pod === undefined || at === '' ? undefined : await readNode(cluster.client, pod, at, now);
  const extenderAway = search === undefined ? scheduler?.extenderAway : search.extenderAway;
  const state = vmState({ ...own, scheduler: { ...scheduler, extenderAway }, search, node });
  const asks = pod && asksOf(pod);
  const prefers = asks?.networks.some(({ affinity }) => affinity === 'preferred');
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
    notes: [...(search?.notes ?? []), ...(prefers ? [PREFERRED_EFFECT] : [])],
    events: recentEvents(subject, now),
  };
}

function placementOf({ host, assigned }: NodeStateFacts) {
  if (host === undefined || assigned.length === 0) return undefined;
  const cpus = unionOf(assigned.map((list) => CpuSet.parse(list)));
  const { host: hardware } = host;
  return {
    cpus: cpus.toArray(),
    numaNodes: [...cellsTouched(hardware, cpus)],
    wholeCores: isWholeCores(hardware, cpus),
  };
}

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
    now,
    annotations: vmi?.metadata.annotations ?? vm?.spec.template?.metadata?.annotations,
    pod,
    events: eventFacts(events, pod?.metadata.uid),
  };
}

async function readNode(client: KubeClient, pod: ExplainedPod, at: string, now: number): Promise<NodeStateFacts> {
  const [node, reported, agents] = await Promise.all([
    readOne(client, `/api/v1/nodes/${encodeURIComponent(at)}`, explainedNode).catch(undefinedIfForbidden),
    readHost(client, at),
    readAgentLeases(client, now),
  ]);
  return nodeFacts(pod.metadata, deadDpu(node), reported, agents?.silent.has(at) === true);
}

export const isOfPlumbline = ({ component }: { readonly component: string }) => component.startsWith('plumbline-');

function recentEvents({ events }: Subject, now: number) {
  const seen = new Set<string>();
  const explained = [];
  for (const event of events) {
    const { type, reason, message, source, reportingComponent } = event;
    const ageSeconds = Math.max(0, Math.round((now - timeOf(event)) / 1000));
    // The message of kube-scheduler is printed above.
    const component = source?.component || reportingComponent || 'unknown';
    const isMinor = type !== 'Warning' && !isOfPlumbline({ component });
    const isKnown = reason === 'FailedScheduling' || reason === 'Scheduled' || seen.has(`${reason} ${message}`);
    if (isKnown || ageSeconds > RECENT_SECONDS || (isMinor && explained.length > 1)) continue;
    seen.add(`${reason} ${message}`);
    explained.push({
      reason: reason ?? '',
      message: message ?? '',
      ageSeconds,
      component,
      /** Whether a policy protects that name. Otherwise any user who may create Events in the namespace can have written it. */
      verified: isVerified(event),
    });
    if (explained.length === MAX_EVENTS) break;
  }
  return explained;
}
