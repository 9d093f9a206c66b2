import { asksOf } from '../../diagnosis/asks.ts';
import type { NodeStateFacts, VmFacts } from '../../diagnosis/facts.ts';
import { podState } from '../../diagnosis/launcher.ts';
import { dpuFacts, type ExplainedPod, explainedNode, timeOf } from '../../diagnosis/objects.ts';
import type { Reason } from '../../diagnosis/reasons.ts';
import { type VmState, vmState } from '../../diagnosis/state.ts';
import * as vmFacts from '../../diagnosis/vm-facts.ts';
import { commonFacts, launcherOf } from '../../diagnosis/vms.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { isWholeCores } from '../../model/host.ts';
import { MIGRATION_LABEL } from '../../model/launcher/recognize.ts';
import { PREFERRED_EFFECT } from '../../model/networks/interfaces.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import { readScheduler } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { readAgentLeases, readHost, readOne, readWebhooksOff, undefinedIfForbidden } from '../support/lists.ts';
import { type ExtenderChoice, searchNodes } from './search.ts';
import type { Subject } from './subject.ts';

/** Limits for Events: older ones and repetitions say nothing about the current state. */
const MAX_EVENTS = 4;
const RECENT_SECONDS = 3600;

export type Explanation = Awaited<ReturnType<typeof explain>>;

const UNSEEN: readonly Reason[] = ['WebhookMissed', 'NotDecided', 'UnpaddedRejected'];

const isUnseen = ({ reason, causes }: VmState): boolean =>
  [reason, ...causes.map((cause) => cause.reason)].some((candidate) => UNSEEN.includes(candidate));

/** @param now milliseconds since 1970 @throws CliError, KubeError */
export async function explain(cluster: ClusterAccess, subject: Subject, choice: ExtenderChoice, now: number) {
  const { kind, namespace, name, launchers, events } = subject;
  const [scheduler, nodeFactsByPod] = await Promise.all([
    launchers.length === 0 ? undefined : readScheduler(cluster.client, now),
    readNodeFacts(cluster.client, launchers, now),
  ]);
  const facts: VmFacts = { ...factsOf(subject, now), scheduler };
  const stateWith = (more: Partial<VmFacts> = {}): VmState => {
    const of = (pod: ExplainedPod): VmFacts => {
      return { ...facts, ...more, node: nodeFactsByPod.get(pod), events: vmFacts.eventFacts(events, pod.metadata.uid) };
    };
    const [pod] = launchers;
    if (kind === 'pod' && pod !== undefined) return { ...podState(of(pod), pod), launcher: pod.metadata.uid };
    return vmState(
      { ...facts, ...more },
      launchers.map((launcher) => launcherOf(launcher, of(launcher))),
    );
  };
  const byUid = (uid: string | undefined) => launchers.find(({ metadata }) => metadata.uid === uid);
  const waiting = byUid(waitingLauncher(stateWith()));
  const search = waiting && (await searchNodes(cluster, waiting, choice, now));
  const extenderAway = search === undefined ? scheduler?.extenderAway : search.extenderAway;
  const searched = { scheduler: { ...scheduler, extenderAway }, search };
  const before = stateWith(searched);
  const webhooksOff = isUnseen(before) ? await readWebhooksOff(cluster.client) : undefined;
  const state = webhooksOff === undefined ? before : stateWith({ ...searched, webhooksOff });
  const pod = byUid(state.launcher);
  const factsOfNode = pod && nodeFactsByPod.get(pod);
  const asks = pod && asksOf(pod, subject.vmi);
  const prefers = asks?.networks.some(({ affinity }) => affinity === 'preferred');
  const scheduled = waiting?.status?.conditions.find(({ type }) => type === 'PodScheduled');
  return {
    ...stateData(state, (uid) => byUid(uid)?.metadata.name),
    kind,
    namespace,
    name,
    pod: pod?.metadata.name,
    node: pod?.spec.nodeName || undefined,
    placement: factsOfNode && placementOf(factsOfNode),
    asks,
    scheduler: scheduled?.status === 'False' ? scheduled.message : undefined,
    source: search?.source,
    nodes: search?.groups ?? [],
    notes: [...migrationNotes(subject), ...(search?.notes ?? []), ...(prefers ? [PREFERRED_EFFECT] : [])],
    events: recentEvents(subject, now),
  };
}

function stateData(life: VmState, nameOf: (uid: string | undefined) => string | undefined) {
  const { state, verdict, reason, text, causes, remedies } = life;
  const migration = life.state === 'migrating' ? life.migration : undefined;
  return {
    state,
    for: life.state === 'waiting' ? life.for : undefined,
    faults: 'faults' in life ? life.faults.map((cause) => cause.reason) : undefined,
    migration: migration && { ...migration, launcher: nameOf(migration.launcher), waits: migration.waits?.reason },
    verdict,
    reason,
    text,
    causes,
    remedies,
  };
}

/** The uid of the launcher that waits for a node. */
function waitingLauncher(state: VmState): string | undefined {
  if (state.state === 'waiting' && state.for === 'node') return state.launcher;
  return state.state === 'migrating' && state.migration.phase === 'scheduling' ? state.migration.launcher : undefined;
}

/** A launcher of a migration is explained by itself only if its name is given. */
function migrationNotes({ kind, launchers, vmi }: Subject): string[] {
  const [pod] = launchers;
  const { nodeName } = vmi?.status ?? {};
  const isTarget = kind === 'pod' && pod?.metadata.labels?.[MIGRATION_LABEL] !== undefined;
  if (!isTarget || !nodeName || nodeName === pod.spec.nodeName) return [];
  return [`it is the target of a migration: the VM runs on ${nodeName}; plumbline explain vm/${vmi?.metadata.name}`];
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

function factsOf({ kind, vm, vmi, ...subject }: Subject, now: number): VmFacts {
  const name = vmi?.metadata.name ?? subject.name;
  const facts = commonFacts({ ...subject, name, machine: vm, instance: vmi }, now);
  return kind === 'pod' && vmi === undefined ? { ...facts, kind } : facts;
}

/** What the nodes of the launchers report. */
async function readNodeFacts(client: KubeClient, launchers: readonly ExplainedPod[], now: number) {
  const placed = launchers.filter(({ spec }) => spec.nodeName);
  const agents = placed.length === 0 ? undefined : await readAgentLeases(client, now);
  const entries = placed.map(async (pod): Promise<[ExplainedPod, NodeStateFacts]> => {
    const at = pod.spec.nodeName ?? '';
    const [node, reported] = await Promise.all([
      readOne(client, `/api/v1/nodes/${encodeURIComponent(at)}`, explainedNode).catch(undefinedIfForbidden),
      readHost(client, at),
    ]);
    return [pod, vmFacts.nodeFacts(pod.metadata, dpuFacts(node, pod), reported, agents?.silent.has(at) === true)];
  });
  return new Map(await Promise.all(entries));
}

export const isOfPlumbline = ({ component }: { readonly component: string }) => component.startsWith('plumbline-');

/** Without what is printed above, and repetitions; at most one that is neither a warning nor Plumbline's after others. */
function recentEvents({ events }: Subject, now: number) {
  const texts = new Set<string>();
  const explained = [];
  for (const event of events) {
    const { type, source, reportingComponent } = event;
    const reason = event.reason ?? '';
    const message = event.message ?? '';
    const ageSeconds = Math.max(0, Math.round((now - timeOf(event)) / 1000));
    const component = source?.component || reportingComponent || 'unknown';
    const isMinor = type !== 'Warning' && !isOfPlumbline({ component });
    // The message of kube-scheduler is printed above.
    const isKnown = reason === 'FailedScheduling' || reason === 'Scheduled' || texts.has(`${reason} ${message}`);
    if (isKnown || ageSeconds > RECENT_SECONDS || (isMinor && explained.length > 1)) continue;
    texts.add(`${reason} ${message}`);
    /** `verified`: a policy protects that name. Otherwise any user who may create Events there can have written it. */
    explained.push({ reason, message, ageSeconds, component, verified: vmFacts.isVerified(event) });
    if (explained.length === MAX_EVENTS) break;
  }
  return explained;
}
