import type { RefusalKind } from '../../model/placement/verdict.ts';
import type { SchedulerRefusal } from '../../model/vm-state/node-groups.ts';

/** What would become of the pod on one node. */
export type NodeOpinion =
  | {
      readonly node: string;
      readonly fits: true;
      /** What the kubelet would give; '' where that is not predicted. */
      readonly cpus: string;
      readonly numaNodes: readonly number[];
      /** What would not be as it was asked for. */
      readonly warnings: readonly string[];
    }
  | {
      readonly node: string;
      readonly fits: false;
      readonly kind: RefusalKind | SchedulerRefusal;
      /** Short, the same for many nodes. */
      readonly text: string;
      /** With the node's own numbers. */
      readonly detail: string;
      /** CPUs or cores that are too few, where it is that. */
      readonly missing?: number | undefined;
    };
export type RefusedOpinion = Extract<NodeOpinion, { fits: false }>;

/** Whose opinions they are. */
export interface Opinions {
  readonly source: 'extender' | 'reports';
  readonly nodes: readonly NodeOpinion[];
  /** What is to be kept in mind when reading them. */
  readonly notes: readonly string[];
}
