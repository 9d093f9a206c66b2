import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Claim } from '../../model/claims/claim.ts';
import { lastingCpus } from '../../model/kubelet/pod-request.ts';
import type { DpuVerdict } from '../cluster/dpu-health.ts';
import { type Fleet, NodeFlag } from '../cluster/fleet.ts';
import type { NodeShape } from '../cluster/node-shapes.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { Decision } from '../filter/decisions.ts';

/**
 * What goes out to the page, as JSON arrays that begin with their kind. Nodes of one make share a record of what they are
 * made of, so that a node itself is little more than its name and its pods' CPUs:
 * - `["s", shape, {…}]`: hardware, kubelet and networks; always before the first node that refers to it
 * - `["n", id, name, shape, flags, dpu, owners, held]`, and `["n", id]` when it is gone. owners: `[pod, container, CPUs,
 *   padding]`; held: `[pod, kind, CPUs]` of pods on their way
 * - `["p", uid, {…}]`: a pod that waits, and `["p", uid]` when it no longer does
 * - `["c", {…}]`: this replica
 *
 * The version changes with whatever an older page would misread.
 */
export const WIRE_VERSION = 1;

/** A node that does not report has no shape. */
export const NO_SHAPE = -1;

/** What a report says of a node apart from its pods. */
type Lasting = Omit<NodeTopologyStatus, 'assignments' | 'conditions' | 'pinning' | 'refusals'>;

export function shapeContent({ key }: NodeShape): string {
  const { cells, cores, reserved, cpuManager, topologyManager, ...more } = JSON.parse(key) as Lasting;
  return JSON.stringify({
    cells: cells.map(({ id, cpus }) => [id, cpus]),
    cores,
    reserved,
    polled: more.pmdCPUs,
    isolated: more.isolated,
    physnets: (more.physnets ?? []).map((one) => [one.name, one.cells]),
    tunnel: more.tunnel?.cells,
    policy: cpuManager.policy,
    wholeCores: cpuManager.options?.['full-pcpus-only'] === 'true',
    alignment: topologyManager?.policy,
    scope: topologyManager?.scope,
    kubelet: more.kubeletVersion,
  });
}

export function shapeRecord(shape: number, content: string): string {
  return `["s",${shape},${content}]`;
}

export interface NodeRecordInputs {
  readonly fleet: Fleet;
  readonly podOf: (uid: string) => PodView | undefined;
  readonly dpu: (node: string) => DpuVerdict;
  readonly heldOn: (node: string) => readonly Claim<PodNeeds>[];
}

export function nodeRecord(id: number, name: string, shape: number, inputs: NodeRecordInputs): string {
  const { fleet, podOf, dpu, heldOn } = inputs;
  const flags = fleet.flags(id);
  const owners = fleet.assignments(id).map(({ podUID, container, cpus }) => {
    const pod = podOf(podUID);
    return [labelOf(pod, podUID), container, cpus, container === 'compute' ? (pod?.padding ?? 0) : 0];
  });
  const held = heldOn(name).map(({ uid, kind, places }) => [
    labelOf(podOf(uid), uid),
    kind,
    places.get(name)?.cpus?.toString() ?? '',
  ]);
  const state = (flags & NodeFlag.dpuHost) === 0 ? '' : dpu(name).state;
  return JSON.stringify(['n', id, name, shape, flags, state, owners, held]);
}

export function nodeEnd(id: number): string {
  return JSON.stringify(['n', id]);
}

/**
 * Whether the page lists a pod among those that wait: it gets CPUs of its own, is a VM's, or was decided about.
 * @param refusal what the agent of its node says, where it keeps the pod from starting
 */
export function waits(pod: PodView, decision: Decision | undefined, refusal: string | undefined): boolean {
  if (pod.deleting) return false;
  if (pod.rejected !== undefined) return true;
  if (pod.terminal || !pod.pending) return false;
  if (pod.node !== undefined) return refusal !== undefined;
  return pod.needs.exclusive || isOfVm(pod) || decision !== undefined;
}

export function podRecord(pod: PodView, decision: Decision | undefined, refusal: string | undefined): string {
  const { needs } = pod;
  const content = {
    namespace: pod.namespace,
    name: pod.name,
    vm: isOfVm(pod) ? pod.owner?.name : undefined,
    since: pod.since,
    node: pod.node,
    nominated: pod.nominated,
    unscheduled: pod.unscheduled,
    rejected: pod.rejected,
    refusedOnHost: refusal,
    cpus: lastingCpus(needs.request),
    wholeCores: needs.wholeCores === true,
    networks: needs.networks.map(({ kind, physnet, affinity }) => [physnet ?? kind, affinity]),
    decision: decision && {
      time: decision.time,
      offered: decision.offered,
      passed: decision.passed,
      answered: decision.answered.map(({ node }) => node),
      refused: Object.entries(decision.refused),
    },
  };
  return JSON.stringify(['p', pod.uid, content]);
}

export function podEnd(uid: string): string {
  return JSON.stringify(['p', uid]);
}

export interface ReplicaStatus {
  readonly active: boolean;
  /** Who holds the lease, as far as this replica has seen. */
  readonly holder: string | undefined;
  /** What has not come in yet. */
  readonly missing: string | undefined;
  readonly identity: string;
  readonly version: string;
}

export function replicaRecord(status: ReplicaStatus): string {
  return JSON.stringify(['c', status]);
}

function isOfVm({ owner }: PodView): boolean {
  return owner?.kind === 'VirtualMachineInstance';
}

/** The VM where there is one: that is what people know a launcher by. */
function labelOf(pod: PodView | undefined, uid: string): string {
  if (pod === undefined) return uid;
  return `${pod.namespace}/${isOfVm(pod) ? (pod.owner?.name ?? pod.name) : pod.name}`;
}
