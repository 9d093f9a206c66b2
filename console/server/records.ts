import type { Cause, NodeGroup, SchedulerFacts } from '../../diagnosis/facts.ts';
import { nodeRemedies } from '../../diagnosis/node-remedies.ts';
import { DEAD_DPU } from '../../diagnosis/objects.ts';
import { ownersByCpu } from '../../diagnosis/owner-letters.ts';
import { REASONS } from '../../diagnosis/reasons.ts';
import { remedyLines } from '../../diagnosis/remedy.ts';
import { allocationRefused } from '../../diagnosis/starting.ts';
import { runningState } from '../../diagnosis/state.ts';
import { isLauncherName, nodeFacts } from '../../diagnosis/vm-facts.ts';
import { withSilent } from '../../diagnosis/waiting.ts';
import { PlumblineError } from '../../model/errors.ts';
import { maskRequestKey } from '../../model/launcher/mask-request.ts';
import { type PlacementHost, type PlacementNeeds, sharesOn, withAssignments } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import { checkReport } from '../../model/report/check.ts';
import {
  GONE,
  type InFlightEntry,
  type NodeContent,
  type NodeProblem,
  type PodContent,
  type RemedyEntry,
  type RunningEntry,
} from '../data/wire.ts';
import type { Cluster } from './cluster.ts';
import { labelOf, type ShownPod, shownState } from './pods.ts';
import type { Report } from './reports.ts';

type NodeSource = Pick<Cluster, 'nodes' | 'reports' | 'stale' | 'draCpu' | 'instances' | 'renewTime'>;

/** @param podOf by uid in a report @param coming not started yet @returns undefined without Node and report */
export function nodeContent(
  name: string,
  { nodes, reports, stale, draCpu, renewTime }: NodeSource,
  podOf: (uid: string) => ShownPod | undefined,
  coming: readonly ShownPod[],
): NodeContent | undefined {
  const node = nodes.get(name);
  const latest = reports.get(name);
  if (node === undefined && latest === undefined) return undefined;
  const { host, devices } = latest?.shape?.empty ?? {};
  const quarantined = latest !== undefined && (host === undefined || checkReport(host, node, devices) !== undefined);
  const report = quarantined ? undefined : latest;
  const isHost = node?.dpuHost === true;
  const isDead = node?.dpuReady === 'False';
  const isSilent = stale.has(name);
  const checks: readonly (readonly [NodeProblem, boolean])[] = [
    ['dpu-dead', isHost && isDead],
    ['silent', isSilent],
    ['quarantined', quarantined],
    // A node that starts no VMs and had no agent, such as one of the control plane, needs none.
    ['no-report', latest === undefined && (node?.acceptsVms === true || renewTime(name) !== undefined)],
    ['dra-cpu', draCpu.has(name)],
    ['no-node', node === undefined],
  ];
  const alive = node?.dpuReady === 'True' ? 'alive' : 'unknown';
  const state = isDead ? 'dead' : alive;
  const problems = checks.filter(([, isTrue]) => isTrue).map(([problem]) => problem);
  return {
    shape: report?.shape?.content,
    problems,
    remedies: problems.flatMap((problem) => remediesOf(problem, name)),
    silentSince: isSilent ? renewTime(name) : undefined,
    dpu: isHost ? state : '',
    owners: ownersByCpu(report?.assignments ?? [])
      .flat()
      .map(({ podUID, pod: named, container, cpus }) => {
        const pod = podOf(podUID);
        const isGone = isSilent && pod === undefined && isLauncherName(named?.split('/')[1] ?? '');
        const label = pod === undefined ? `${named ?? podUID}${isGone ? GONE : ''}` : labelOf(pod);
        return [label, container, cpus, container === 'compute' ? (pod?.padding ?? 0) : 0];
      }),
    inFlight: inFlightOn(report, coming),
    resources: report?.resources ?? [],
    dpuSince: isHost && node.dpuSince !== undefined ? [node.dpuSince, node.dpuMessage ?? ''] : undefined,
  };
}

const REFUSALS: Readonly<Record<Exclude<NodeProblem, 'no-node'>, NodeGroup['kind']>> = {
  'dpu-dead': 'dpu',
  silent: 'stale-report',
  quarantined: 'quarantined',
  'no-report': 'no-report',
  'dra-cpu': 'dra-cpu',
};

function remediesOf(problem: NodeProblem, node: string): RemedyEntry[] {
  if (problem === 'no-node') return [];
  const group = { kind: REFUSALS[problem], text: '', count: 1, nodes: [node], detail: '' };
  return nodeRemedies([group], { namespace: '', name: '', kind: undefined }).map(remedyLines);
}

export interface Surroundings {
  readonly scheduler?: SchedulerFacts | undefined;
  /** Why Plumbline's own scheduler places no pod. */
  readonly fault?: Cause | undefined;
  readonly silent?: ReadonlySet<string>;
}

/** @param refusal why the agent of its node refused its start, if it did */
export function podContent(
  pod: ShownPod,
  refusal: string | undefined,
  { fault, silent }: Surroundings = {},
): PodContent {
  const { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks } = pod;
  const asks = { cpus, wholeCores, networks, mask: maskText(pod) };
  const common = { namespace, name, vm, since, node, nominated, unscheduled, rejected, ...asks };
  // The pod's own objects contain neither the refusal nor the fault.
  const cause = refusal === undefined ? fault : allocationRefused(node ?? '', refusal);
  if (cause === undefined || (refusal === undefined && !pod.waitsForScheduler)) {
    const { reason, text = '' } = pod.state ?? {};
    return { ...common, ...pod.state, ...(reason === 'NoNodeFits' && { text: withSilent(text, silent) }) };
  }
  const { reason, text, remedies } = cause;
  const { verdict } = REASONS[reason];
  return { ...common, refusedOnHost: refusal, verdict, reason, text, remedies: remedies.map(remedyLines) };
}

/** Characters of a mask; its owner determines the length. */
const MAX_MASK_CHARACTERS = 120;

function maskText({ needs: { mask } }: ShownPod): string | undefined {
  return mask && maskRequestKey(mask).slice(0, MAX_MASK_CHARACTERS);
}

export function runningEntry(
  pod: ShownPod,
  cluster: NodeSource,
  scheduler: SchedulerFacts | undefined,
): RunningEntry | undefined {
  const { verdict, reason, text, remedies } = stateWhereItRuns(pod, cluster, scheduler);
  const mask = maskText(pod);
  if (verdict === 'ok' && mask === undefined) return undefined;
  return [labelOf(pod), pod.node ?? '', mask ?? '', verdict, reason, text, remedies];
}

function stateWhereItRuns(pod: ShownPod, cluster: NodeSource, scheduler: SchedulerFacts | undefined) {
  const { namespace, name, vm, node = '', needs, bypasses } = pod;
  const vmi = vm === undefined ? undefined : cluster.instances.get(`${namespace}/${vm}`);
  // During a migration the launcher on the other node is the target.
  const pause = vmi?.node === node ? vmi.facts.pause : undefined;
  const instance = pause && { phase: 'Running', pause };
  const { dpuReady, dpuMessage } = cluster.nodes.get(node) ?? {};
  const dead = dpuReady === 'False' ? (dpuMessage ?? DEAD_DPU) : undefined;
  const report = cluster.reports.get(node);
  const reported = report && { host: report.shape?.empty, status: report };
  const place = nodeFacts({ ...pod, uid: pod.kubeletUid }, dead, reported, cluster.stale.has(node));
  const facts = { namespace, name: vm ?? name, kind: undefined, instance, node: place, scheduler, now: Date.now() };
  return shownState(runningState(facts, node, needs, bypasses));
}

/** Number of pods on one node whose CPUs are predicted; of others only the names are shown. */
const MAX_PREDICTED_PODS = 16;

/** Nominated or bound, and not in its report. Reservations are the extender's. @param coming oldest first */
function inFlightOn(report: Report | undefined, coming: readonly ShownPod[]): InFlightEntry[] {
  if (coming.length === 0) return [];
  const host = hostOf(report);
  const assumed: PlacementNeeds[] = [];
  return coming.flatMap((pod): InFlightEntry[] => {
    const { needs, kubeletUid, node, cpus } = pod;
    if (cpus === 0) return [];
    if (host && (host.owners.has(kubeletUid) || sharesOn(needs, host))) return [];
    const kind = node === undefined ? 'nominated' : 'bound';
    if (host === undefined || assumed.length === MAX_PREDICTED_PODS) return [[labelOf(pod), kind, '']];
    const verdict = judgeHost(needs, host, assumed, 'count-check');
    assumed.push(needs);
    return [[labelOf(pod), kind, verdict.fits ? `${verdict.cpus ?? ''}` : '']];
  });
}

function hostOf(report: Report | undefined): PlacementHost | undefined {
  if (report?.shape === undefined) return undefined;
  try {
    return withAssignments(report.shape.empty, report.assignments, report.usage);
  } catch (error) {
    if (error instanceof PlumblineError) return undefined;
    throw error;
  }
}
