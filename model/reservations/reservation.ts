import type { CpuSet } from '../cpu-set.ts';
import type { PlacementHost, ReportedAssignments } from '../placement/needs.ts';

/** The prediction for a pod on one node at the time of its reservation. */
export interface Place {
  /** Undefined if the node's kubelet cannot be predicted. */
  readonly cpus: CpuSet | undefined;
  /** A whole number from 0 to 10. */
  readonly score: number;
  /** The report that the prediction is from. Absent if other pods were in flight on the node. */
  readonly basis?: PredictionBasis | undefined;
}

export interface PredictionBasis {
  /** `key` is the report without pods, as JSON. */
  readonly shape: { readonly key: string; readonly empty: PlacementHost };
  readonly assignments: ReportedAssignments;
  /** See `usageOf`. */
  readonly usage: string;
}

/**
 * Reserved room on one or several nodes for a pod that is in no report yet.
 * - promised: the pod may be bound to any of the nodes, or to none. The reservation expires after a time.
 * - nominated: the scheduler has nominated one node and not yet bound the pod.
 * - bound: the pod is bound to that node.
 */
export interface Reservation<P> {
  /** Ascending: a pod that is filtered again gets another reservation. */
  readonly id: number;
  readonly uid: string;
  /** Undefined for a reservation that was observed and not created by a filter call. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly kind: 'tentative' | 'nominated' | 'bound';
  readonly pod: P;
  /** By node name. Undefined for a reservation that was observed and not created by a filter call. */
  readonly places: ReadonlyMap<string, Place | undefined>;
  /** The pod's resourceVersion at the time of the reservation. */
  readonly version: string;
  /** Seconds of the monotonic clock; undefined: it does not expire. */
  readonly expires: number | undefined;
  /** Whether the pod had a nominated node before the filter call, as after a preemption. */
  readonly hadNomination?: boolean | undefined;
}

/** Why a reservation ended. Each one ends exactly once. */
export type ReservationEnd =
  | 'shown'
  | 'terminal'
  | 'deleted'
  | 'bound-elsewhere'
  | 'unschedulable'
  | 'nomination-withdrawn'
  | 'filtered-again'
  | 'expired';

/** A pod as observed in the API server. */
export interface PodObservation<P> {
  readonly uid: string;
  readonly version: string;
  readonly node: string | undefined;
  /** status.nominatedNodeName. */
  readonly nominated: string | undefined;
  /**
   * Whether the scheduler has dropped the node that it had chosen, for example because volumes or a Permit plugin
   * refuse it.
   */
  readonly dropped: boolean;
  /** Whether the pod has ended: its CPUs are free again, or were never taken. */
  readonly terminal: boolean;
  readonly pod: P;
}

/**
 * Whether one resourceVersion of an object is later than another. Numeric versions are comparable: Kubernetes documents
 * that since 1.35. Any others are only compared for equality.
 */
export function isLater(version: string, than: string): boolean {
  const numeric = /^[0-9]+$/;
  if (!numeric.test(version) || !numeric.test(than)) return version !== than;
  return version.length === than.length ? version > than : version.length > than.length;
}

/** While others are in flight, a pod gets one SHAREth of its even part of the candidate nodes. */
const SHARE = 4;

/**
 * The number of nodes to return, and therefore to reserve, for one pod.
 *
 * Every returned node is reserved until the scheduler has chosen one. While other pods are in flight, a pod therefore
 * gets only a small share of the nodes that could run it. In a small or full cluster that is one node for each pod, and
 * the reservations then match the available room exactly. A pod that is alone leaves the whole choice to the scheduler.
 *
 * @param most limit if no other pod is in flight
 * @param candidates nodes that seem able to run the pod
 * @param others pods with open reservations, and waiting calls
 */
export function answerLimit(most: number, candidates: number, others: number): number {
  if (others === 0) return most;
  return Math.max(1, Math.min(most, Math.floor(candidates / (SHARE * (others + 1)))));
}

/** Seconds from a filter call to the binding of a pod that does not wait for a volume; in practice milliseconds. */
const BINDING_SECONDS = 60;
/** Seconds that kube-scheduler waits for a pod's volumes before it binds (VolumeBindingArgs.bindTimeoutSeconds). */
const VOLUME_BINDING_SECONDS = 600;

/** Default limit of a reservation in seconds: the limit for volumes, then the binding. */
export const DEFAULT_RESERVATION_SECONDS = VOLUME_BINDING_SECONDS + BINDING_SECONDS;

/**
 * Seconds for which kube-scheduler may still bind a pod after a filter call, without any update of the pod. Before
 * 1.35, or without the feature NominatedNodeNameForExpectation, it writes nothing before the binding itself. Room that
 * another pod gets within that time would be promised twice.
 *
 * @param waits whether its binding can wait for volumes or devices
 * @param most the limit for a pod that waits, in seconds
 */
export function reservationSeconds(waits: boolean, most: number): number {
  return waits ? most : Math.min(most, BINDING_SECONDS);
}
