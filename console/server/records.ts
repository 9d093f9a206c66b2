import { maskRequestKey } from '../../model/launcher/mask-request.ts';
import { checkReport } from '../../model/report/check.ts';
import { REASONS } from '../../model/vm-state/reasons.ts';
import { allocationRefused } from '../../model/vm-state/starting.ts';
import type { NodeContent, PodContent, Problem, RunningEntry } from '../data/wire.ts';
import type { Cluster } from './cluster.ts';
import { inFlightOn } from './in-flight.ts';
import { labelOf, type ShownPod, type ShownState } from './pods.ts';
import { stateWhereItRuns } from './running.ts';

/** The parts of the cluster that a node's record depends on. */
type NodeSource = Pick<Cluster, 'nodes' | 'reports' | 'stale' | 'draCpu' | 'paused'>;

/**
 * The content of one node's record.
 * @param podOf finds the pod with this uid in a report
 * @param coming pods that are bound or nominated to the node and have not started
 * @returns undefined if there is neither a Node nor a report
 */
export function nodeContent(
  name: string,
  { nodes, reports, stale, draCpu }: NodeSource,
  podOf: (uid: string) => ShownPod | undefined,
  coming: readonly ShownPod[],
): NodeContent | undefined {
  const node = nodes.get(name);
  const given = reports.get(name);
  if (node === undefined && given === undefined) return undefined;
  const { host, devices } = given?.shape?.empty ?? {};
  const quarantined = given !== undefined && (host === undefined || checkReport(host, node, devices) !== undefined);
  const report = quarantined ? undefined : given;
  const isHost = node?.dpuHost === true;
  const isDead = node?.dpuReady === 'False';
  const problems: readonly (readonly [Problem, boolean])[] = [
    ['dpu-dead', isHost && isDead],
    ['silent', stale.has(name)],
    ['quarantined', quarantined],
    ['no-report', given === undefined],
    ['dra-cpu', draCpu.has(name)],
    ['no-node', node === undefined],
  ];
  const alive = node?.dpuReady === 'True' ? 'alive' : 'unknown';
  const state = isDead ? 'dead' : alive;
  return {
    shape: report?.shape?.content,
    problems: problems.filter(([, isTrue]) => isTrue).map(([problem]) => problem),
    dpu: isHost ? state : '',
    owners: (report?.assignments ?? []).map(({ podUID, pod: named, container, cpus }) => {
      const pod = podOf(podUID);
      const label = pod === undefined ? (named ?? podUID) : labelOf(pod);
      return [label, container, cpus, container === 'compute' ? (pod?.padding ?? 0) : 0];
    }),
    inFlight: inFlightOn(report, coming),
    resources: report?.resources ?? [],
    dpuSince: isHost && node.dpuSince !== undefined ? [node.dpuSince, node.dpuMessage ?? ''] : undefined,
  };
}

/** @param refusal why the agent of its node refused its start, if it did */
export function podContent(pod: ShownPod, refusal: string | undefined): PodContent {
  const { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks } = pod;
  const shown = { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks };
  return { ...shown, refusedOnHost: refusal, ...stateOf(pod, refusal) };
}

/** @param refusal from the agent of its node; the pod's own objects do not contain it */
function stateOf({ state, node = '' }: ShownPod, refusal: string | undefined): Partial<ShownState> {
  if (refusal === undefined) return state ?? {};
  const { reason, text } = allocationRefused(node, refusal);
  return { verdict: REASONS[reason].verdict, reason, text };
}

/** Characters of a mask; its owner determines the length. */
const MAX_MASK_CHARACTERS = 120;

/** Undefined if the node's record contains all details. */
export function runningEntry(pod: ShownPod, cluster: NodeSource): RunningEntry | undefined {
  const { verdict, reason, text } = stateWhereItRuns(pod, cluster);
  const { mask } = pod.needs;
  if (verdict === 'ok' && mask === undefined) return undefined;
  const maskText = mask === undefined ? '' : maskRequestKey(mask).slice(0, MAX_MASK_CHARACTERS);
  return [labelOf(pod), pod.node ?? '', maskText, verdict, reason, text];
}
