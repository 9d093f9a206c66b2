import type { Finding } from '../finding.ts';
import type { NodeRequirement } from '../launcher/node-selection.ts';

/** A container's place in the pod. */
export interface Place {
  readonly list: 'containers' | 'initContainers';
  readonly index: number;
}

/** What is to become of one container. */
export interface ContainerChange extends Place {
  /** CPUs that request and limit become; undefined leaves them. */
  readonly cpus?: number | undefined;
  /** Extended resources of which the container requests one each. */
  readonly resources: readonly string[];
  /** Extended resources that it must not have any more: what they were for has changed since an earlier pass. */
  readonly dropped?: readonly string[];
}

/** What is to become of a pod. */
export interface PodChange {
  readonly containers: readonly ContainerChange[];
  /** Annotations to set; undefined removes one. */
  readonly annotations: Readonly<Record<string, string | undefined>>;
  /** Requirements on nodes of which one must hold. */
  readonly nodes: readonly NodeRequirement[] | undefined;
  /** The scheduler to set; undefined leaves the pod's own. */
  readonly scheduler?: string | undefined;
}

/** What is done to a launcher, as its VMI says it in an Event; nothing on a pass that finds it done. */
export interface Done {
  /** CamelCase, stable. */
  readonly reason: string;
  readonly message: string;
}

/** A finding about a pod under review. */
export interface AdmissionFinding extends Finding {
  /** HTTP status of the refusal that an error is; 422 if not given. */
  readonly status?: number;
}

/** What one pod comes to. */
export type Decision =
  /** Nothing is decided for it: it is admitted as it is. */
  | { readonly outcome: 'unchanged'; readonly findings: readonly AdmissionFinding[] }
  | {
      readonly outcome: 'changed';
      readonly changes: PodChange;
      /** The decision annotation: tells one decision about a VMI from another. Every launcher has one. */
      readonly text: string | undefined;
      readonly done: readonly Done[];
      /** Warnings and information, also about the scheduler. No errors. */
      readonly findings: readonly AdmissionFinding[];
    }
  | {
      readonly outcome: 'refused';
      /** HTTP status. */
      readonly code: number;
      /** The message of the first error. */
      readonly reason: string;
      /** As it would be if the pod were admitted. */
      readonly text: string | undefined;
      readonly done: readonly Done[];
      /** All errors, then as above. */
      readonly findings: readonly AdmissionFinding[];
    };
