import type { Cause, SchedulerFacts, VmFacts } from '../../diagnosis/facts.ts';
import { ownersByCpu } from '../../diagnosis/hosts.ts';
import { allocationRefused, launcherState, runningState } from '../../diagnosis/launcher.ts';
import { nodeRemedies } from '../../diagnosis/node-remedies.ts';
import { DEAD_DPU, lossOf } from '../../diagnosis/objects.ts';
import { REASONS } from '../../diagnosis/reasons.ts';
import { forgetRestart, remedyLines } from '../../diagnosis/remedies.ts';
import { concluded, type Launcher, type VmState, vmState } from '../../diagnosis/state.ts';
import { isLauncherName, migrationFacts, nodeFacts } from '../../diagnosis/vm-facts.ts';
import { withSilent } from '../../diagnosis/waiting.ts';
import { readableOrNone } from '../../model/errors.ts';
import { maskRequestKey } from '../../model/launcher/mask-request.ts';
import { type PlacementHost, type PlacementNeeds, sharesOn, withAssignments } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import { checkReport } from '../../model/report/check.ts';
import {
  GONE,
  type InFlightEntry,
  MIGRATION_TARGET,
  type NodeContent,
  type NodeProblem,
  type PodContent,
  type RemedyEntry,
  type RunningEntry,
} from '../data/wire.ts';
import type { Cluster } from './cluster.ts';
import { labelOf, type ShownPod, shownState } from './pods.ts';
import type { Report } from './reports.ts';

type NodeSource = Omit<Cluster, 'run' | 'missing' | 'problem' | 'leader' | 'notReady' | 'forbidden'>;

/** @param podOf by uid in a report @param coming not started yet @returns undefined without Node and report */
export function nodeContent(
  name: string,
  { nodes, reports, stale, draCpu, renewTime }: NodeSource,
  podOf: (uid: string) => ShownPod | undefined,
  coming: readonly ShownPod[],
  isTarget: (pod: ShownPod) => boolean,
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
    ['dpu-restarted', isHost && node.dpuRestart !== undefined],
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
  const labelOfOwner = (podUID: string, named: string | undefined) => {
    const pod = podOf(podUID);
    if (pod !== undefined) return `${labelOf(pod)}${isTarget(pod) ? MIGRATION_TARGET : ''}`;
    return `${named ?? podUID}${isSilent && isLauncherName(named?.split('/')[1] ?? '') ? GONE : ''}`;
  };
  const owners = ownersByCpu(report?.assignments ?? []).flat();
  return {
    shape: report?.shape?.content,
    problems,
    remedies: problems.flatMap((problem) => remediesOf(problem, name)),
    silentSince: isSilent ? renewTime(name) : undefined,
    dpu: isHost ? state : '',
    owners: owners.map(({ podUID, pod, container, cpus }) => {
      const padding = container === 'compute' ? (podOf(podUID)?.padding ?? 0) : 0;
      return [labelOfOwner(podUID, pod), container, cpus, padding];
    }),
    inFlight: inFlightOn(report, coming),
    resources: report?.resources ?? [],
    dpuSince: isHost && node.dpuSince !== undefined ? [node.dpuSince, node.dpuMessage ?? ''] : undefined,
  };
}

function remediesOf(problem: NodeProblem, node: string): RemedyEntry[] {
  if (problem === 'no-node') return [];
  if (problem === 'dpu-restarted') return [remedyLines(forgetRestart(node))];
  const kinds = { 'dpu-dead': 'dpu', silent: 'stale-report' } as const;
  const kind = problem === 'dpu-dead' || problem === 'silent' ? kinds[problem] : problem;
  const group = { kind, text: '', count: 1, nodes: [node], detail: '' };
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
    const state = pod.launcher && shownState(concluded(pod.launcher));
    const { reason, text = '' } = state ?? {};
    return { ...common, ...state, ...(reason === 'NoNodeFits' && { text: withSilent(text, silent) }) };
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

/** @param launchers of its VM, with itself @returns undefined if the page has nothing to say, or its VM runs in another */
export function runningEntry(
  pod: ShownPod,
  launchers: readonly ShownPod[],
  cluster: NodeSource,
  surroundings: Surroundings,
): RunningEntry | undefined {
  const state = stateOfLaunchers(launchers, cluster, surroundings);
  const mask = maskText(pod);
  if (state.launcher !== pod.uid || state.state === 'stopping') return undefined;
  if (state.verdict === 'ok' && state.state === 'running' && mask === undefined) return undefined;
  const { verdict, reason, text, remedies } = shownState(state);
  return [labelOf(pod), pod.node ?? '', mask ?? '', verdict, reason, text, remedies];
}

/** The state of the VM with these launchers; of a pod that is no launcher, by itself. */
export function stateOfLaunchers(
  launchers: readonly ShownPod[],
  cluster: NodeSource,
  { scheduler }: Surroundings,
): VmState {
  const { namespace = '', name = '', vm } = launchers[0] ?? {};
  const pod: VmFacts = { namespace, name: vm ?? name, kind: undefined, scheduler, now: Date.now() };
  const facts = vm === undefined ? pod : { ...pod, ...factsOfVm(`${namespace}/${vm}`, cluster) };
  const states = launchers.map((launcher) => shownLauncher(launcher, facts, cluster));
  return vmState(facts, states);
}

/** @param key namespace/name */
function factsOfVm(key: string, { machines, instances, migrationsOf }: NodeSource) {
  const instance = instances.get(key);
  const migration = migrationFacts(instance?.recorded, migrationsOf(key));
  return { machine: machines.get(key)?.facts, instance: instance?.facts, migration };
}

function shownLauncher(pod: ShownPod, facts: VmFacts, cluster: NodeSource): Launcher {
  const { uid, kubeletUid, node = '', needs, bypasses, migration, created } = pod;
  const common = { uid, node: node || undefined, migration, created };
  if (pod.launcher !== undefined && (!pod.pending || node === '')) return { ...common, state: pod.launcher };
  const { dpuReady, dpuMessage, dpuRestart } = cluster.nodes.get(node) ?? {};
  const dead = dpuReady === 'False' ? (dpuMessage ?? DEAD_DPU) : undefined;
  const report = cluster.reports.get(node);
  const reported = report && { host: report.shape?.empty, status: report };
  const dpu = { deadDpu: dead, networkLost: lossOf(dpuRestart, pod.networkMadeAt) };
  const factsOfNode = nodeFacts({ ...pod, uid: kubeletUid }, dpu, reported, cluster.stale.has(node));
  const factsThere = { ...facts, node: factsOfNode };
  const starting = { metadata: pod, spec: { nodeName: node, containers: [] } };
  const state = pod.pending ? launcherState(factsThere, starting) : runningState(factsThere, node, needs, bypasses);
  return { ...common, state };
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
  const { shape, assignments, usage } = report;
  return readableOrNone(() => withAssignments(shape.empty, assignments, usage));
}
