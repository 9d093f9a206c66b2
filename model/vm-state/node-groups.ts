import type { RefusalKind } from '../placement/verdict.ts';

/**
 * Why a node is rejected whatever Plumbline's own verdict is: by kube-scheduler, or, `too-large`, since the node could
 * not hold the pod if it were empty.
 */
export type SchedulerRefusal =
  | 'cordoned'
  | 'cordoned-and-more'
  | 'tainted'
  | 'not-ready'
  | 'not-selected'
  | 'short-of'
  | 'too-large';

/** Nodes of which the same is true. */
export interface NodeGroup {
  /** 'fits', or why not. */
  readonly kind: 'fits' | RefusalKind | SchedulerRefusal;
  readonly text: string;
  readonly count: number;
  /** All of them; the one that needs least comes first. */
  readonly nodes: readonly string[];
  /** Of the first of them, with its numbers. */
  readonly detail: string;
  readonly missing?: number | undefined;
  /** Of those that fit: CPUs that the first of them would give, and their NUMA nodes; absent where that is not predicted. */
  readonly cpus?: readonly number[] | undefined;
  readonly numaNodes?: readonly number[] | undefined;
}
