import { BoundedMap } from '../bounded-map.ts';
import {
  isLater,
  type Place,
  type PodObservation,
  REPORTING_SECONDS,
  type Reservation,
  type ReservationEnd,
} from './reservation.ts';

interface ReservationsOptions<P> {
  /** Its report contains the pod's CPUs, or the pod takes none there. */
  readonly isShown: (node: string, uid: string, pod: P) => boolean;
  readonly onAssumed?: (node: string) => void;
  readonly onEnd?: (reservation: Reservation<P>, end: ReservationEnd) => void;
}

interface NewReservation<P> extends Pick<Reservation<P>, 'uid' | 'name' | 'pod' | 'hadNomination'> {
  readonly namespace: string;
  /** Empty: every node refused the pod. */
  readonly places: ReadonlyMap<string, Place>;
  readonly version: string;
  /** Not before the scheduler has bound the pod or given up. */
  readonly expires: number;
}

interface BoundPod {
  node: string;
  /** Whether a report of its node had it, or that was waited for long enough. */
  isSettled: boolean;
  /** Of a pod that is being deleted; see PodObservation. */
  graceSeconds: number | undefined;
  /** Since when its node's reports lack it, and since when it is being deleted. */
  missingSince: number | undefined;
  deletedSince: number | undefined;
}
/** Of pods that have ended. A filter call about one is at most seconds late. */
const MAX_ENDED_PODS = 5000;

const NEWLY_BOUND = { isSettled: false, graceSeconds: undefined, missingSince: undefined, deletedSince: undefined };

/**
 * Tracks which pods have reserved room that is in no report yet.
 *
 * Filter calls create reservations. Watch events narrow and end them; the watches of different kinds may arrive in any
 * order. Only the events of one object are assumed to be in order.
 *
 * Invariants
 * - A pod has at most one reservation, and each reservation ends exactly once.
 * - A pod that is bound, has not ended and was never in its node's report has a reservation on that node, until it is
 *   past its grace period, or until the agent there has reported for REPORTING_SECONDS without it.
 * - A report only ends reservations on its own node. A reservation ends as a whole only after the API server reports
 *   that the pod is bound to the node whose report contains it.
 * - After the report of a pod's own node has contained the pod once, only that report counts for the pod.
 * - Events older than a reservation never end it: they belong to an earlier attempt.
 *
 * No clock and no I/O: times are seconds of the caller's monotonic clock.
 */
export class Reservations<P> {
  readonly #options: ReservationsOptions<P>;
  readonly #reservations = new Map<string, Reservation<P>>();
  /** Reservations by node, oldest first. */
  readonly #assumed = new Map<string, readonly Reservation<P>[]>();
  /** Pods that the API server reports as bound and not ended. */
  readonly #bound = new Map<string, BoundPod>();
  /** Uids of the pods that ended last: kube-scheduler may still ask about one, and nothing would end its reservation. */
  readonly #ended = new BoundedMap<string, true>(MAX_ENDED_PODS);
  /** The id of the last reservation of a pod that was bound to the node without one, while others are in flight there. */
  readonly #unexpected = new Map<string, number>();
  #nominatesChoice = false;
  #lastId = 0;

  constructor(options: ReservationsOptions<P>) {
    this.#options = options;
  }

  /** Number of reservations of pods that may still be bound to any of several nodes, or to none. */
  get unbound(): number {
    return this.#ofKind('tentative').length;
  }

  unboundIn(namespace: string): number {
    return this.#ofKind('tentative').filter((reservation) => reservation.namespace === namespace).length;
  }

  /** The scheduler then nominates its choice for every pod that waits before its binding: other nodes become free. */
  get nominatesChoice(): boolean {
    return this.#nominatesChoice;
  }

  get size(): number {
    return this.#reservations.size;
  }

  of(uid: string): Reservation<P> | undefined {
    return this.#reservations.get(uid);
  }

  /** Whether the API server reports that the pod is bound to the node and has not ended. */
  isBoundTo(uid: string, node: string): boolean {
    return this.#bound.get(uid)?.node === node;
  }

  /** Whether a pod that was not reserved there was bound to the node since the reservation of this one, or is in flight. */
  hasUnexpected(node: string, uid: string): boolean {
    const id = this.#reservations.get(uid)?.id ?? this.#lastId;
    if ((this.#unexpected.get(node) ?? 0) > id) return true;
    return this.assumedOn(node, uid).some(({ places }) => places.get(node) === undefined);
  }

  /** Oldest first, without the reservation of one pod. */
  assumedOn(node: string, except?: string): Reservation<P>[] {
    return this.#assumed.get(node)?.filter(({ uid }) => uid !== except) ?? [];
  }

  /** The scheduler may bind the pod to these nodes only. It replaces an earlier reservation. */
  reserve({ uid, ...made }: NewReservation<P>): void {
    // The scheduler's cache is outdated: no decision about a pod that already has a node, or is gone, can take effect.
    if (this.#reservations.get(uid)?.kind === 'bound' || this.#bound.get(uid)?.isSettled) return;
    if (this.#ended.has(uid)) return;
    this.withdraw(uid);
    if (made.places.size === 0) return;
    this.#open({ uid, kind: 'tentative', ...made });
  }

  /** Ends the reservation of a pod that is filtered again, so that it does not block itself. */
  withdraw(uid: string): void {
    const reservation = this.#reservations.get(uid);
    if (reservation && reservation.kind !== 'bound') this.#end(reservation, 'filtered-again');
  }

  observe(sight: PodObservation<P>): void {
    const { uid, node, nominated } = sight;
    this.#ended.delete(uid);
    if (sight.terminal) this.#gone(uid, 'terminal');
    else if (node !== undefined) this.#sawBound(sight, node);
    else if (nominated !== undefined) this.#sawNominated(sight, nominated);
    else this.#sawWaiting(sight);
  }

  deleted(uid: string): void {
    this.#gone(uid, 'deleted');
  }

  reported(node: string, reportedUids: Iterable<string>): void {
    for (const uid of reportedUids) {
      const reservation = this.#reservations.get(uid);
      if (this.isBoundTo(uid, node)) this.#settle(uid, 'shown');
      else if (reservation && reservation.kind !== 'bound' && reservation.places.has(node))
        this.#leave(reservation, node);
    }
  }

  expire(now: number): void {
    for (const reservation of this.#ofKind('tentative'))
      if ((reservation.expires ?? 0) <= now) this.#end(reservation, 'expired');
  }

  /**
   * Ends the reservations of bound pods that their kubelets have refused, or never took. Call it every second.
   * @param isReporting whether the agent of the node reports
   */
  expireBound(nowSeconds: number, isReporting: (node: string) => boolean): void {
    for (const { uid } of this.#ofKind('bound')) {
      const pod = this.#bound.get(uid)!;
      pod.missingSince = isReporting(pod.node) ? (pod.missingSince ?? nowSeconds) : undefined;
      if (pod.graceSeconds !== undefined) pod.deletedSince ??= nowSeconds;
      const { missingSince = nowSeconds, deletedSince = nowSeconds, graceSeconds = 0 } = pod;
      if (nowSeconds - missingSince < REPORTING_SECONDS && nowSeconds - deletedSince <= graceSeconds) continue;
      this.#settle(uid, 'not-reported');
    }
  }

  /** Ends what a complete list of pods that are bound and pending does not contain. @param isKnown by another list */
  listed(uids: ReadonlySet<string>, isKnown: (uid: string) => boolean): void {
    for (const { uid } of this.#ofKind('bound')) if (!uids.has(uid) && !isKnown(uid)) this.deleted(uid);
  }

  #ofKind(kind: Reservation<P>['kind']): Reservation<P>[] {
    return [...this.#reservations.values()].filter((reservation) => reservation.kind === kind);
  }

  #sawBound({ uid, pod, version, graceSeconds }: PodObservation<P>, node: string): void {
    const before = this.#reservations.get(uid);
    const present = this.#bound.get(uid) ?? NEWLY_BOUND;
    this.#bound.set(uid, { ...present, node, graceSeconds: graceSeconds ?? present.graceSeconds });
    if (present.isSettled || this.#options.isShown(node, uid, pod)) {
      this.#settle(uid, 'shown');
      return;
    }
    if (before?.kind === 'bound') return;
    if (this.#moveTo(node, { uid, kind: 'bound', pod, version }) && this.assumedOn(node, uid).length > 0)
      this.#unexpected.set(node, this.#lastId);
  }

  #sawNominated({ uid, pod, version }: PodObservation<P>, node: string): void {
    const before = this.#reservations.get(uid);
    if (before?.kind === 'bound' || this.#bound.get(uid)?.isSettled) return;
    if (before && !isLater(version, before.version)) return;
    const isPromised = before?.places.has(node);
    if (isPromised && before?.kind === 'nominated') return;
    if (isPromised && !before?.hadNomination) this.#nominatesChoice = true;
    this.#moveTo(node, { uid, kind: 'nominated', pod, version });
  }

  /** Narrows the reservation to a node of it, or ends it and opens another one. @returns whether another one is open */
  #moveTo(node: string, made: Pick<Reservation<P>, 'uid' | 'kind' | 'pod' | 'version'>): boolean {
    const before = this.#reservations.get(made.uid);
    if (before?.places.has(node)) {
      this.#remove(before);
      const places = new Map([[node, before.places.get(node)]]);
      this.#add({ ...before, kind: made.kind, places, expires: undefined });
      return false;
    }
    if (before) this.#end(before, 'bound-elsewhere');
    this.#open({ ...made, places: new Map([[node, undefined]]), expires: undefined });
    return true;
  }

  /** From now on only the report of the pod's node counts. */
  #settle(uid: string, end: ReservationEnd): void {
    this.#bound.get(uid)!.isSettled = true;
    const reservation = this.#reservations.get(uid);
    if (reservation) this.#end(reservation, end);
  }

  #sawWaiting({ uid, version, dropped }: PodObservation<P>): void {
    const before = this.#reservations.get(uid);
    if (!before || before.kind === 'bound' || !isLater(version, before.version)) return;
    if (before.kind === 'nominated') this.#end(before, 'nomination-withdrawn');
    else if (dropped) this.#end(before, 'unschedulable');
  }

  #gone(uid: string, end: ReservationEnd): void {
    const reservation = this.#reservations.get(uid);
    if (reservation) this.#end(reservation, end);
    this.#bound.delete(uid);
    this.#ended.set(uid, true);
  }

  #open(reservation: Omit<Reservation<P>, 'id'>): void {
    this.#add({ ...reservation, id: ++this.#lastId });
  }

  /** The report counts the pod's CPUs there. It may be ahead of the pod's own watch, or wrong. */
  #leave(reservation: Reservation<P>, node: string): void {
    const places = new Map(reservation.places);
    places.delete(node);
    const next = { ...reservation, places };
    // Replaces the entry in place, which keeps the order of reservations.
    this.#reservations.set(reservation.uid, next);
    for (const other of places.keys()) {
      const there = this.#assumed.get(other) ?? [];
      const replaced = there.map((assumed) => (assumed === reservation ? next : assumed));
      this.#assumed.set(other, replaced);
    }
    this.#release(reservation, node);
  }

  #release({ uid }: Reservation<P>, node: string): void {
    const left = this.assumedOn(node, uid);
    if (left.length > 0) this.#assumed.set(node, left);
    else {
      this.#assumed.delete(node);
      this.#unexpected.delete(node);
    }
    this.#options.onAssumed?.(node);
  }

  #end(reservation: Reservation<P>, end: ReservationEnd): void {
    this.#remove(reservation);
    this.#options.onEnd?.(reservation, end);
  }

  #add(reservation: Reservation<P>): void {
    this.#reservations.set(reservation.uid, reservation);
    for (const node of reservation.places.keys()) {
      this.#assumed.set(node, [...(this.#assumed.get(node) ?? []), reservation]);
      this.#options.onAssumed?.(node);
    }
  }

  #remove(reservation: Reservation<P>): void {
    this.#reservations.delete(reservation.uid);
    for (const node of reservation.places.keys()) this.#release(reservation, node);
  }
}
