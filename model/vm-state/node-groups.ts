import type { RefusalKind } from '../placement/verdict.ts';

/**
 * Why a node is rejected independently of Plumbline's verdict: by kube-scheduler, or, `too-large`, because the node
 * could not hold the pod even if it were empty.
 */
export type SchedulerRefusal =
  | 'cordoned'
  | 'cordoned-and-more'
  | 'tainted'
  | 'not-ready'
  | 'not-selected'
  | 'short-of'
  | 'too-large';

/** Nodes with the same verdict. */
export interface NodeGroup {
  /** 'fits', or the reason. */
  readonly kind: 'fits' | RefusalKind | SchedulerRefusal;
  readonly text: string;
  readonly count: number;
  /** All nodes of the group; the one that needs the least comes first. */
  readonly nodes: readonly string[];
  /** The detail of the first node, with its numbers. */
  readonly detail: string;
  readonly missing?: number | undefined;
  /**
   * If the pod fits: the CPUs that the first node would assign, and their NUMA nodes; absent if that is not predicted.
   */
  readonly cpus?: readonly number[] | undefined;
  readonly numaNodes?: readonly number[] | undefined;
}
