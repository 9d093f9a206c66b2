import type { ContainerShape, OwnerReference } from '../launcher/shapes.ts';
import type { PlacementHost } from '../placement/needs.ts';
import type { NeedyPod } from '../placement/pod-needs.ts';
import type { NodeGroup } from './node-groups.ts';
import type { Reason } from './reasons.ts';
import type { Remedy } from './remedy.ts';

type Maybe<T> = T | null | undefined;

/** A launcher or another pod, as the API server has it. */
export interface StatePod extends NeedyPod {
  readonly metadata: NeedyPod['metadata'] & {
    readonly name?: string | undefined;
    readonly namespace?: string | undefined;
    readonly deletionTimestamp?: string | undefined;
    readonly ownerReferences?: readonly OwnerReference[] | undefined;
  };
  readonly spec: NonNullable<NeedyPod['spec']> & {
    readonly nodeName?: string | undefined;
    readonly schedulerName?: string | undefined;
    readonly containers: readonly ContainerShape[];
    readonly schedulingGates?: Maybe<readonly { readonly name: string }[]>;
  };
  readonly status?:
    | {
        readonly phase?: string | undefined;
        readonly qosClass?: string | undefined;
        readonly reason?: string | undefined;
        readonly message?: string | undefined;
        readonly nominatedNodeName?: string | undefined;
        readonly conditions?: Maybe<
          readonly { readonly type: string; readonly status: string; readonly message?: string | undefined }[]
        >;
        readonly containerStatuses?: Maybe<readonly ContainerStatus[]>;
        readonly initContainerStatuses?: Maybe<readonly ContainerStatus[]>;
      }
    | undefined;
}

interface ContainerStatus {
  readonly state?: Maybe<{
    readonly waiting?: Maybe<{ readonly reason?: Maybe<string>; readonly message?: Maybe<string> }>;
  }>;
}

/** The VirtualMachine. */
export interface MachineFacts {
  /** Whether it is switched on. */
  readonly wanted: boolean;
  /** What KubeVirt shows of it; '' for nothing. */
  readonly says: string;
  /** Why KubeVirt cannot start it. */
  readonly failure?: string | undefined;
  /** Starts in a row that ended before the guest ran. */
  readonly failures?: number | undefined;
  /** Seconds until KubeVirt tries again. */
  readonly retryIn?: number | undefined;
}

/** The VirtualMachineInstance. */
export interface InstanceFacts {
  readonly phase: string;
  readonly reason?: string | undefined;
  /** Why KubeVirt cannot make its launcher. */
  readonly refusal?: string | undefined;
  /** The pause it is in; `atStart`: the one that Plumbline has it start with. */
  readonly pause?: { readonly atStart: boolean; readonly text: string } | undefined;
}

/** A launcher that a kubelet rejected and KubeVirt has deleted since, by its Event. */
export interface RejectionFacts {
  readonly node?: string | undefined;
  readonly reason: string;
  readonly message: string;
}

/** The node that the pod is bound to. */
export interface NodeStateFacts {
  /** What the condition plumbline.dev/DPUReady says where it is False. */
  readonly deadDpu?: string | undefined;
  /** Its agent has been silent for too long. */
  readonly silent: boolean;
  /** By its report; undefined where it does not report, or what it reports is ignored. */
  readonly host?: PlacementHost | undefined;
  /** CPUs of the pod as a list, by container. */
  readonly assigned: readonly string[];
  /** What the agent says of the pod's CPU mask. */
  readonly pinning?:
    | {
        readonly state: 'pinned' | 'unpinned' | 'refused';
        readonly reason?: string | undefined;
        readonly message?: string | undefined;
      }
    | undefined;
  /** Why the agent keeps the pod from starting. */
  readonly refusedStart?: string | undefined;
}

/** Plumbline's own scheduler. */
export interface SchedulerFacts {
  /** Whether a replica leads; undefined: not known. */
  readonly leads?: boolean | undefined;
  /** Why none leads. */
  readonly away?: string | undefined;
}

/** What would become of the pod on every node. */
export interface SearchFacts {
  readonly groups: readonly NodeGroup[];
  readonly nodes: number;
}

/**
 * All that the state of a VM or pod is judged by. What an output does not read is left out: then it says less, and nothing
 * else.
 */
export interface VmFacts {
  readonly namespace: string;
  /** Of the VM, else of its instance, else of the pod. */
  readonly name: string;
  /** What it is, as far as commands that name it go; undefined: not known whether a VM made the instance. */
  readonly kind: 'vm' | 'vmi' | 'pod' | undefined;
  readonly machine?: MachineFacts | undefined;
  readonly instance?: InstanceFacts | undefined;
  readonly rejection?: RejectionFacts | undefined;
  /** Annotations of the template or instance, where there is no launcher to read them of. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly pod?: StatePod | undefined;
  readonly node?: NodeStateFacts | undefined;
  readonly scheduler?: SchedulerFacts | undefined;
  readonly search?: SearchFacts | undefined;
  /** Messages of its latest Events that matter before it runs. */
  readonly events?:
    | {
        readonly sandbox?: string | undefined;
        readonly evicted?: string | undefined;
        readonly cannotEvict?: string | undefined;
        /** Why the extender would evict it, were it not configured to hold such pods (`--eviction hold`). */
        readonly cannotStart?: string | undefined;
      }
    | undefined;
}

/** Something that is true of a VM. */
export interface Cause {
  readonly reason: Reason;
  /** One line. */
  readonly text: string;
  readonly remedies: readonly Remedy[];
}
