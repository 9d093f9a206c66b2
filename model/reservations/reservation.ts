import type { CpuSet } from '../cpu-set.ts';
import type { PlacementHost, ReportedAssignments } from '../placement/needs.ts';

export interface Place {
  /** Undefined if the node's kubelet cannot be predicted. */
  readonly cpus: CpuSet | undefined;
  readonly score: number;
  /** The report that the prediction is from. Absent if other pods were in flight on the node. */
  readonly basis?: PredictionBasis | undefined;
}

export interface PredictionBasis {
  /** `key` is the report without pods, as JSON. */
  readonly shape: { readonly key: string; readonly empty: PlacementHost };
  readonly assignments: ReportedAssignments;
  readonly usage: string;
}

/** Reserved room for a pod that is in no report yet; `tentative`: it may be bound to any of the nodes, until a time. */
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

/** Each one ends exactly once. */
export type ReservationEnd =
  | 'shown'
  | 'terminal'
  | 'deleted'
  | 'bound-elsewhere'
  | 'unschedulable'
  | 'nomination-withdrawn'
  | 'filtered-again'
  | 'not-reported'
  | 'expired';

export interface PodObservation<P> {
  readonly uid: string;
  readonly version: string;
  readonly node: string | undefined;
  readonly nominated: string | undefined;
  /** For example because volumes or a Permit plugin refuse the node that it had chosen. */
  readonly dropped: boolean;
  /** Of a pod that is being deleted: seconds until its kubelet kills it, from the request. */
  readonly graceSeconds?: number | undefined;
  /** Whether the pod has ended: its CPUs are free again, or were never taken. */
  readonly terminal: boolean;
  readonly pod: P;
}

/** Numeric versions are comparable (since 1.35); any others only for equality. */
export function isLater(version: string, than: string): boolean {
  const numeric = /^[0-9]+$/;
  if (!numeric.test(version) || !numeric.test(than)) return version !== than;
  return version.length === than.length ? version > than : version.length > than.length;
}

/** While others are in flight, a pod gets one SHAREth of its even part of the candidate nodes. */
const SHARE = 4;

/**
 * The nodes to return, and therefore to reserve, for one pod: while others are in flight only a small share of those
 * that could run it, one in a small or full cluster. A pod that is alone leaves the choice to the scheduler.
 * @param most if no other pod is in flight @param others pods with open reservations, and waiting calls
 */
export function answerLimit(most: number, candidates: number, others: number): number {
  if (others === 0) return most;
  return Math.max(1, Math.min(most, Math.floor(candidates / (SHARE * (others + 1)))));
}

/**
 * Seconds until the report of a node whose agent renews its Lease contains a pod that is bound to it, if its kubelet
 * admits it at all.
 */
export const REPORTING_SECONDS = 60;

/** For a pod that does not wait for a volume; in practice milliseconds. */
const BINDING_SECONDS = 60;
/** Seconds that kube-scheduler waits for a pod's volumes before it binds (VolumeBindingArgs.bindTimeoutSeconds). */
const VOLUME_BINDING_SECONDS = 600;

/** The limit for volumes, then the binding. */
export const DEFAULT_RESERVATION_SECONDS = VOLUME_BINDING_SECONDS + BINDING_SECONDS;

/**
 * Before 1.35, or without NominatedNodeNameForExpectation, kube-scheduler writes nothing before the binding itself:
 * room that another pod gets within that time would be promised twice.
 * @param waits whether its binding can wait for volumes or devices @param most the limit for such a pod, in seconds
 */
export function reservationSeconds(waits: boolean, most: number): number {
  return waits ? most : Math.min(most, BINDING_SECONDS);
}
