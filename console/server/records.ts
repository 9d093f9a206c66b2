import { maskRequestKey } from '../../model/launcher/mask-request.ts';
import { checkReport } from '../../model/report/check.ts';
import { REASONS } from '../../model/vm-state/reasons.ts';
import { allocationRefused } from '../../model/vm-state/starting.ts';
import {
  type DpuSince,
  type DpuState,
  type InFlightEntry,
  NodeFlag,
  type OwnerEntry,
  type Status,
} from '../data/wire.ts';
import type { Cluster } from './cluster.ts';
import { inFlightOn } from './in-flight.ts';
import { labelOf, type ShownPod, type ShownState } from './pods.ts';
import type { Report } from './reports.ts';
import { stateWhereItRuns } from './running.ts';

/** The parts of the cluster that a node's record depends on. */
export type NodeSource = Pick<Cluster, 'nodes' | 'reports' | 'stale' | 'draCpu' | 'paused'>;

/** The content of one node's record. */
export interface NodePicture {
  readonly flags: number;
  readonly dpu: DpuState;
  /** Content of its shape; undefined without a report or if the report is in quarantine. */
  readonly shape: string | undefined;
  readonly owners: readonly OwnerEntry[];
  readonly inFlight: readonly InFlightEntry[];
  readonly resources: Report['resources'];
  readonly dpuSince: DpuSince | undefined;
}

/**
 * @param podOf finds the pod with this uid in a report
 * @param coming pods that are bound or nominated to the node and have not started
 * @returns undefined if there is neither a Node nor a report
 */
export function nodePicture(
  name: string,
  { nodes, reports, stale, draCpu }: NodeSource,
  podOf: (uid: string) => ShownPod | undefined,
  coming: readonly ShownPod[],
): NodePicture | undefined {
  const node = nodes.get(name);
  const given = reports.get(name);
  if (node === undefined && given === undefined) return undefined;
  const { host, devices } = given?.shape?.empty ?? {};
  const quarantined = given !== undefined && (host === undefined || checkReport(host, node, devices) !== undefined);
  const report = quarantined ? undefined : given;
  const dead = node?.dpuReady === 'False';
  const flag = (isTrue: boolean | undefined, bit: number) => (isTrue === true ? bit : 0);
  return {
    flags:
      flag(node !== undefined, NodeFlag.node) |
      flag(node?.dpuHost, NodeFlag.dpuHost) |
      flag(dead, NodeFlag.dpuDead) |
      flag(draCpu.has(name), NodeFlag.draCpu) |
      flag(stale.has(name), NodeFlag.stale) |
      flag(quarantined, NodeFlag.quarantined),
    dpu: node?.dpuHost !== true ? '' : dead ? 'dead' : node.dpuReady === 'True' ? 'alive' : 'unknown',
    shape: report?.shape?.content,
    owners: (report?.assignments ?? []).map(({ podUID, pod: named, container, cpus }) => {
      const pod = podOf(podUID);
      const label = pod === undefined ? (named ?? podUID) : labelOf(pod);
      return [label, container, cpus, container === 'compute' ? (pod?.padding ?? 0) : 0];
    }),
    inFlight: inFlightOn(report, coming),
    resources: report?.resources ?? [],
    dpuSince:
      node?.dpuHost === true && node.dpuSince !== undefined ? [node.dpuSince, node.dpuMessage ?? ''] : undefined,
  };
}

export function shapeRecord(shape: number, content: string): string {
  return `["s",${shape},${content}]`;
}

export function nodeRecord(id: number, name: string, shape: number, picture: NodePicture): string {
  const { flags, dpu, owners, inFlight, resources, dpuSince } = picture;
  const record = ['n', id, name, shape, flags, dpu, owners, inFlight, resources];
  return JSON.stringify(dpuSince === undefined ? record : [...record, dpuSince]);
}

export function nodeEnd(id: number): string {
  return JSON.stringify(['n', id]);
}

/** @param refusal why the agent of its node refused its start, if it did */
export function podRecord(pod: ShownPod, refusal: string | undefined): string {
  const { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks } = pod;
  const shown = { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks };
  return JSON.stringify(['p', pod.uid, { ...shown, refusedOnHost: refusal, ...stateOf(pod, refusal) }]);
}

/** @param refusal from the agent of its node; the pod's own objects do not contain it */
function stateOf({ state, node = '' }: ShownPod, refusal: string | undefined): Partial<ShownState> {
  if (refusal === undefined) return state ?? {};
  const { reason, text } = allocationRefused(node, refusal);
  return { verdict: REASONS[reason].verdict, reason, text };
}

/** Characters of a mask; its owner determines the length. */
const LONGEST_MASK = 120;

/** Undefined if the node's record contains all details. */
export function runningRecord(pod: ShownPod, cluster: NodeSource): string | undefined {
  const { verdict, reason, text } = stateWhereItRuns(pod, cluster);
  const { mask } = pod.needs;
  if (verdict === 'ok' && mask === undefined) return undefined;
  return JSON.stringify([
    'r',
    pod.uid,
    [
      labelOf(pod),
      pod.node ?? '',
      mask === undefined ? '' : maskRequestKey(mask).slice(0, LONGEST_MASK),
      verdict,
      reason,
      text,
    ],
  ]);
}

export function runningEnd(uid: string): string {
  return JSON.stringify(['r', uid]);
}

export function podEnd(uid: string): string {
  return JSON.stringify(['p', uid]);
}

export function statusRecord(status: Status): string {
  return JSON.stringify(['c', status]);
}
