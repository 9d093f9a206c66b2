import type { RefusalKind } from '../../model/placement/verdict.ts';
import type { SchedulerRefusal } from '../../model/vm-state/facts.ts';

/** The predicted result for the pod on one node. */
export type NodeOpinion =
  | {
      readonly node: string;
      readonly fits: true;
      /** The CPUs that the kubelet would assign; '' if not predicted. */
      readonly cpus: string;
      readonly numaNodes: readonly number[];
      /** Requests that would not be met. */
      readonly warnings: readonly string[];
    }
  | {
      readonly node: string;
      readonly fits: false;
      readonly kind: RefusalKind | SchedulerRefusal;
      /** Short text, equal for many nodes. */
      readonly text: string;
      /** Text with the node's own numbers. */
      readonly detail: string;
      /** CPUs or cores that are missing, if that is the reason. */
      readonly missing?: number | undefined;
    };
export type RefusedOpinion = Extract<NodeOpinion, { fits: false }>;

/** The predicted results and their source. */
export interface Opinions {
  readonly source: 'extender' | 'reports';
  readonly nodes: readonly NodeOpinion[];
  /** Limits of these predictions. */
  readonly notes: readonly string[];
}
