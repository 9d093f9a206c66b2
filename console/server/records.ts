import { maskRequestKey } from '../../model/launcher/mask-request.ts';
import { checkReport } from '../../model/report/check.ts';
import { REASONS } from '../../model/vm-state/reasons.ts';
import { allocationRefused } from '../../model/vm-state/starting.ts';
import type { Cluster } from './cluster.ts';
import { type InFlight, inFlightOn } from './in-flight.ts';
import { labelOf, type ShownPod, type ShownState } from './pods.ts';
import { stateWhereItRuns } from './running.ts';

/**
 * What goes out to the page, as JSON arrays that begin with their kind. Nodes of one make share a record of what they are
 * made of, so that a node itself is little more than its name and its pods' CPUs:
 * - `["s", shape, {…}]`: hardware, kubelet and networks; always before the first node that refers to it
 * - `["n", id, name, shape, flags, dpu, owners, inFlight, dpuSince]`, and `["n", id]` when it is gone. owners: `[pod,
 *   container, CPUs, padding]`; inFlight: `[pod, kind, CPUs]` of pods on their way; dpuSince: `[time, message]` of its DPU's
 *   condition, left out where there is none
 * - `["r", uid, [pod, node, CPUs, verdict, reason, text]]`: a pod that runs and of which the nodes' records do not say all:
 *   it is not as it was promised, its guest is paused, or it has a CPU mask. `["r", uid]` when that is over
 * - `["p", uid, {…}]`: a pod that waits, and `["p", uid]` when it no longer does
 * - `["c", {…}]`: what is true of the whole picture
 *
 * The version changes with whatever an older page would misread.
 */
export const WIRE_VERSION = 2;

/** A node that does not report has no shape. */
export const NO_SHAPE = -1;

/** What is true of a node, as bits. */
export const NodeFlag = { node: 1, dpuHost: 2, dpuDead: 4, draCpu: 8, stale: 16, quarantined: 32 } as const;

/** What of the cluster a node's record is made of. */
export type NodeSource = Pick<Cluster, 'nodes' | 'reports' | 'stale' | 'draCpu' | 'paused'>;

/** What the page shows of one node. */
export interface NodePicture {
  readonly flags: number;
  readonly dpu: '' | 'alive' | 'dead' | 'unknown';
  /** Content of its shape; undefined where there is no report, or none that counts. */
  readonly shape: string | undefined;
  readonly owners: readonly (readonly [pod: string, container: string, cpus: string, padding: number])[];
  readonly inFlight: readonly InFlight[];
  /** Since when its DPU has been so, RFC 3339, and the message. */
  readonly dpuSince: readonly [time: string, message: string] | undefined;
}

/**
 * @param podOf the pod that a report knows by this uid
 * @param coming pods that are bound or nominated to the node and have not started
 * @returns undefined where there is neither a Node nor a report
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
  const host = given?.shape?.empty.host;
  const quarantined = given !== undefined && (host === undefined || checkReport(host, node) !== undefined);
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
    dpuSince:
      node?.dpuHost === true && node.dpuSince !== undefined ? [node.dpuSince, node.dpuMessage ?? ''] : undefined,
  };
}

export function shapeRecord(shape: number, content: string): string {
  return `["s",${shape},${content}]`;
}

export function nodeRecord(id: number, name: string, shape: number, picture: NodePicture): string {
  const { flags, dpu, owners, inFlight, dpuSince } = picture;
  const record = ['n', id, name, shape, flags, dpu, owners, inFlight];
  return JSON.stringify(dpuSince === undefined ? record : [...record, dpuSince]);
}

export function nodeEnd(id: number): string {
  return JSON.stringify(['n', id]);
}

/** @param refusal what the agent of its node says, where it keeps the pod from starting */
export function podRecord(pod: ShownPod, refusal: string | undefined): string {
  const { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks } = pod;
  const shown = { namespace, name, vm, since, node, nominated, unscheduled, rejected, cpus, wholeCores, networks };
  return JSON.stringify(['p', pod.uid, { ...shown, refusedOnHost: refusal, ...stateOf(pod, refusal) }]);
}

/** @param refusal of the agent of its node, which the pod's own objects do not show */
function stateOf({ state, node = '' }: ShownPod, refusal: string | undefined): Partial<ShownState> {
  if (refusal === undefined) return state ?? {};
  const { reason, text } = allocationRefused(node, refusal);
  return { verdict: REASONS[reason].verdict, reason, text };
}

/** Characters: its owner chooses how long it is. */
const LONGEST_MASK = 120;

/** Undefined for one of which the node's record says all. */
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

export interface Status extends Pick<Cluster, 'leader' | 'missing' | 'problem'> {
  readonly version: string;
  /** Optional kinds that may not be read. */
  readonly without: readonly string[];
}

export function statusRecord(status: Status): string {
  return JSON.stringify(['c', status]);
}
