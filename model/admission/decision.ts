import type { Finding } from '../finding.ts';
import type { NodeRequirement } from '../launcher/node-selection.ts';

/** Position of a container in the pod. */
export interface Place {
  readonly list: 'containers' | 'initContainers';
  readonly index: number;
}

/** Changes to one container. */
export interface ContainerChange extends Place {
  /** New CPU request and limit; undefined leaves them unchanged. */
  readonly cpus?: number | undefined;
  /** Extended resources of which the container requests one each. */
  readonly resources: readonly string[];
}

/** Changes to a pod. */
export interface PodChange {
  readonly containers: readonly ContainerChange[];
  /** Annotations to set; undefined removes one. */
  readonly annotations: Readonly<Record<string, string | undefined>>;
  /** Node requirements of which one must hold. */
  readonly nodes: readonly NodeRequirement[] | undefined;
  /** The scheduler to set; undefined leaves the pod's own scheduler. */
  readonly scheduler?: string | undefined;
}

/** A finding about a pod under review. */
export interface AdmissionFinding extends Finding {
  /** HTTP status if this error refuses the pod. Default 422. */
  readonly status?: number;
}

/** The decision about one pod. */
export type Decision =
  /** No decision applies: the pod is admitted unchanged. */
  | { readonly outcome: 'unchanged'; readonly findings: readonly AdmissionFinding[] }
  | {
      readonly outcome: 'changed';
      readonly changes: PodChange;
      /** Text of the decision annotation, which distinguishes the decisions about one VMI. Every launcher has one. */
      readonly text: string | undefined;
      /** Warnings and information, also about the scheduler. No errors. */
      readonly findings: readonly AdmissionFinding[];
    }
  | {
      readonly outcome: 'refused';
      /** HTTP status. */
      readonly code: number;
      /** The message of the first error. */
      readonly reason: string;
      /** The text as if the pod were admitted. */
      readonly text: string | undefined;
      /** All errors, then warnings and information as for an admitted pod. */
      readonly findings: readonly AdmissionFinding[];
    };
