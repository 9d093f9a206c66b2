import type { CpuSet } from '../cpu-set.ts';

/** What was predicted for a pod on one node when its room was reserved. */
export interface Place {
  /** Undefined where the node's kubelet cannot be predicted. */
  readonly cpus: CpuSet | undefined;
  /** A whole number from 0 to 10. */
  readonly score: number;
}

/**
 * Room that is spoken for on one or several nodes by a pod that no report shows yet.
 * - promised: the pod may come to any of the nodes, or to none; it ends by itself after a time.
 * - nominated: the scheduler has named one node and not bound the pod to it yet.
 * - bound: the pod is that node's.
 */
export interface Reservation<P> {
  /** Counts up: a pod that is filtered again gets another reservation. */
  readonly id: number;
  readonly uid: string;
  readonly kind: 'tentative' | 'nominated' | 'bound';
  readonly pod: P;
  /** By node name. Nothing is predicted for a reservation that was found and not made. */
  readonly places: ReadonlyMap<string, Place | undefined>;
  /** The pod's resourceVersion that was known when the reservation was made. */
  readonly version: string;
  /** Seconds of the monotonic clock; undefined: no end by itself. */
  readonly expires: number | undefined;
}

/** Why a reservation ended. Each ends exactly once. */
export type ReservationEnd =
  | 'shown'
  | 'terminal'
  | 'deleted'
  | 'bound-elsewhere'
  | 'unschedulable'
  | 'nomination-withdrawn'
  | 'filtered-again'
  | 'expired';

/** A pod as the API server shows it. */
export interface ObservedPod<P> {
  readonly uid: string;
  readonly version: string;
  readonly node: string | undefined;
  /** status.nominatedNodeName. */
  readonly nominated: string | undefined;
  /** The scheduler has given up the node that it had chosen, as where volumes or a Permit plugin refuse it. */
  readonly dropped: boolean;
  /** It has ended: its CPUs are free again, or were never taken. */
  readonly terminal: boolean;
  readonly pod: P;
}

/**
 * Whether one resourceVersion of an object is later than another. They are numbers, comparable since Kubernetes 1.35
 * says so; of two that are not, only that they differ is known.
 */
export function isLater(version: string, than: string): boolean {
  const numeric = /^[0-9]+$/;
  if (!numeric.test(version) || !numeric.test(than)) return version !== than;
  return version.length === than.length ? version > than : version.length > than.length;
}
