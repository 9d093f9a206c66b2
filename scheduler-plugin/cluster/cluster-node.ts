import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { assignedCpus } from '../../model/kubelet/report.ts';
import type { FreeCpus } from '../../model/placement/coarse.ts';
import { type PlacementNeeds, sharesOn } from '../../model/placement/needs.ts';
import type { NodeShape } from './node-shapes.ts';

/** The stored part of a report's assignment. */
export interface Assignment {
  readonly podUID: string;
  readonly container: string;
  readonly cpus: string;
}

/** What the extender knows about one node. */
export interface ClusterNode {
  readonly name: string;
  /** The API server has a Node of this name. */
  readonly exists: boolean;
  /** A DPU provides its network. */
  readonly dpuHost: boolean;
  /** Its DPU counts as dead. */
  readonly dpuDead: boolean;
  /** The dra.cpu driver assigns its CPUs, as the kubelet does. */
  readonly draCpu: boolean;
  /** Its agent has been silent for too long. */
  readonly stale: boolean;
  /** Its report contradicts its Node, or cannot be parsed. */
  readonly quarantined: boolean;
  /** Those of its Node object. */
  readonly labels: ReadonlyMap<string, string>;
  /** From its report: hardware, kubelet and networks. Undefined if it has not reported. */
  readonly shape: NodeShape | undefined;
  /** From its report: the CPUs that containers own there. */
  readonly assignments: readonly Assignment[];
  /** From its report: the devices and memory that pods use there; see `usageOf`. */
  readonly usage: string;
  /** The shape and all owned CPUs, devices and memory. Nodes with equal text accept the same pods. '' without a report. */
  readonly load: string;
  /** By NUMA node, according to its report. */
  readonly free: readonly FreeCpus[];
  /** Number of reservations of pods that its report does not contain yet. */
  readonly reservations: number;
  /** CPUs that these pods will take. */
  readonly reservedCpus: number;
}

/** The facts about a node that are either true or false. */
export type NodeFlag = 'exists' | 'dpuHost' | 'dpuDead' | 'draCpu' | 'stale' | 'quarantined';

/** The shape of a node with a current report: one that exists, is fresh, and does not contradict the Node. */
export function trustedShape({ shape, stale, quarantined }: ClusterNode): NodeShape | undefined {
  return stale || quarantined ? undefined : shape;
}

/** Whether a pod would run on the node's shared CPUs, where it needs no reservation. */
export function sharesCpusOn({ shape }: Pick<ClusterNode, 'shape'>, needs: PlacementNeeds): boolean {
  return shape !== undefined && sharesOn(needs, shape.empty);
}

/** Whether the node's report contains the pod. */
export function reportsPod({ assignments }: ClusterNode, uid: string): boolean {
  return assignments.some(({ podUID }) => podUID === uid);
}

/** The CPUs that containers own on the node. */
export function ownedCpusOf({ assignments }: ClusterNode): CpuSet {
  return unionOf(assignedCpus(assignments));
}
