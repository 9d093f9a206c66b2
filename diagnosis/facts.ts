import { pausedCondition } from '../kube/cluster-view/vmis.ts';
import type { PinningState } from '../kube/node-topology.ts';
import { isPausedAtStart, parsePausedStart } from '../model/launcher/paused-start.ts';
import { PAUSED_START_ANNOTATION } from '../model/names.ts';
import type { PlacementHost } from '../model/placement/needs.ts';
import type { TriedChanges } from '../model/placement/tried-changes.ts';
import type { RefusalKind } from '../model/placement/verdict.ts';
import type { ConditionShape, MetaShape, PodShape } from '../model/shapes.ts';
import type { Reason } from './reasons.ts';
import type { Named, Remedy } from './remedies.ts';

export interface MachineFacts {
  readonly shouldRun: boolean;
  /** The status that KubeVirt prints; '' if none. */
  readonly says: string;
  readonly failure?: string | undefined;
  /** Number of consecutive starts that ended before the guest ran. */
  readonly failures?: number | undefined;
  /** Seconds until KubeVirt's next attempt. */
  readonly retryIn?: number | undefined;
  /** What changes only with a restart, by KubeVirt; '' if it does not say. */
  readonly restartRequired?: string | undefined;
}

export interface InstanceFacts {
  readonly phase: string;
  readonly reason?: string | undefined;
  readonly refusal?: string | undefined;
  /** The current pause. `atStart`: Plumbline made the VMI start with it. `since`: RFC 3339, '' if unknown. */
  readonly pause?: { readonly atStart: boolean; readonly text: string; readonly since: string } | undefined;
  /** The node on which its guest runs, or is about to start. */
  readonly node?: string | undefined;
  readonly deleting?: boolean | undefined;
  /** Changes of the running VM that take effect with its next migration. */
  readonly changes?: readonly string[] | undefined;
  /** Its CPUs are those of a claim (domain.cpu.dra), which its launcher does not request. */
  readonly hasCpusOfClaim?: boolean | undefined;
  /** The node that it is asked to leave: by a drain, or by another eviction. */
  readonly evacuatedFrom?: string | undefined;
  /** Why KubeVirt cannot migrate it; '' if it does not say. */
  readonly notMigratable?: string | undefined;
}

/** The newest migration of an instance. */
export interface MigrationFacts {
  readonly uid?: string | undefined;
  /** Of its VirtualMachineInstanceMigration; undefined if that cannot be read. */
  readonly name?: string | undefined;
  readonly progress: 'pending' | 'copying' | 'post-copy' | 'cancelling' | 'succeeded' | 'failed' | 'cancelled';
  /** Why it failed, or why KubeVirt cannot create the target's launcher. */
  readonly message?: string | undefined;
}

/** A launcher that a kubelet rejected and KubeVirt has deleted since, from its Event. */
export interface RejectionFacts {
  readonly node?: string | undefined;
  readonly reason: string;
  readonly message: string;
}

export interface NodeStateFacts {
  readonly deadDpu?: string | undefined;
  /** The restart of its DPU since which the pod has no network, as text. */
  readonly networkLost?: string | undefined;
  readonly silent: boolean;
  /** From its report; undefined if it has none or the report is ignored. */
  readonly host?: PlacementHost | undefined;
  readonly assigned: readonly string[];
  readonly pinning?: Pick<PinningState, 'state' | 'reason' | 'message'> | undefined;
  readonly refusedStart?: string | undefined;
  /** Why its agent does not use its network map, by the report’s condition. */
  readonly networkMapFault?: string | undefined;
  /** Percent of its CPUs that it lost to interrupts and other work; undefined below 1. */
  readonly interferencePercent?: number | undefined;
}

export interface SchedulerFacts {
  /** Whether a replica leads; undefined: unknown. */
  readonly leads?: boolean | undefined;
  readonly away?: string | undefined;
  /** Why the extender of Plumbline's scheduler does not answer; undefined: it answers, or that is unknown. */
  readonly extenderAway?: string | undefined;
}

export interface SearchFacts {
  readonly groups: readonly NodeGroup[];
  readonly nodes: number;
}

/** An output omits facts that it does not read: the state then has fewer details and is otherwise the same. */
export interface VmFacts extends Named {
  readonly machine?: MachineFacts | undefined;
  readonly instance?: InstanceFacts | undefined;
  readonly migration?: MigrationFacts | undefined;
  readonly rejection?: RejectionFacts | undefined;
  /** Annotations of the template or instance, if there is no launcher. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly pod?: PodShape | undefined;
  readonly node?: NodeStateFacts | undefined;
  readonly scheduler?: SchedulerFacts | undefined;
  /** Why the API server does not call the webhook now; undefined: it does, or that is unknown. */
  readonly webhooksOff?: string | undefined;
  readonly search?: SearchFacts | undefined;
  /** Nodes whose agents are silent; only used without `search`. */
  readonly silent?: ReadonlySet<string> | undefined;
  /** Milliseconds since 1970; undefined: no state depends on its age. */
  readonly now?: number | undefined;
  /** Messages of its latest Events that matter before it runs. */
  readonly events?:
    | {
        readonly sandbox?: string | undefined;
        readonly evicted?: string | undefined;
        readonly cannotEvict?: string | undefined;
        /** Why the extender would evict it without the setting that keeps such pods (`--eviction hold`). */
        readonly cannotStart?: string | undefined;
      }
    | undefined;
}

/** For the text of a launcher that the webhook did not see. */
export const whileOff = ({ webhooksOff }: Pick<VmFacts, 'webhooksOff'>): string =>
  webhooksOff === undefined ? '' : ` (the webhook is now ${webhooksOff})`;

export interface Cause {
  readonly reason: Reason;
  readonly text: string;
  readonly remedies: readonly Remedy[];
}

export const cause = (reason: Reason, text: string, ...remedies: readonly Remedy[]): Cause => ({
  reason,
  text,
  remedies,
});

export type Conditions = readonly ConditionShape[] | null | undefined;

export function findCondition(conditions: Conditions, type: string, status = 'True'): ConditionShape | undefined {
  return conditions?.find((condition) => condition.type === type && condition.status === status);
}

interface PausableInstance {
  readonly metadata: MetaShape;
  readonly status?: { readonly conditions?: Conditions } | null | undefined;
}

/** From KubeVirt's condition Paused. The text is its reason: the message says the same without a length limit. */
export function pauseOf({ metadata, status }: PausableInstance): InstanceFacts['pause'] {
  const condition = pausedCondition({ status });
  if (condition === undefined) return undefined;
  const [reason, since] = [condition.reason ?? '', condition.lastTransitionTime ?? ''];
  const record = parsePausedStart(metadata.annotations?.[PAUSED_START_ANNOTATION]);
  return { atStart: isPausedAtStart(record, { reason, since }), text: reason, since };
}

/** By kube-scheduler, or, `too-large`, because the node could not hold the pod even if it were empty. */
export type SchedulerRefusal =
  | 'cordoned'
  | 'cordoned-and-more'
  | 'tainted'
  | 'not-ready'
  | 'not-selected'
  | 'pod-affinity'
  | 'network-map'
  | 'short-of'
  | 'more-than-node'
  | 'too-large';

/** Why a node without a current report is not predicted. */
export const NO_CURRENT_REPORT = 'its agent does not report';
export const STOPPED_REPORT = 'its agent has stopped reporting';

export interface NodeGroup {
  /** 'fits', 'not-predicted' if the node may accept or refuse it, or the reason. */
  readonly kind: 'fits' | 'not-predicted' | RefusalKind | SchedulerRefusal;
  readonly text: string;
  readonly count: number;
  /** All nodes of the group; the one that needs the least comes first. */
  readonly nodes: readonly string[];
  /** The detail of the first node, with its numbers. */
  readonly detail: string;
  readonly missing?: number | undefined;
  readonly tried?: TriedChanges | undefined;
  /**
   * If the pod fits: the CPUs that the first node would assign, and their NUMA nodes; absent if that is not predicted.
   */
  readonly cpus?: readonly number[] | undefined;
  readonly numaNodes?: readonly number[] | undefined;
}
