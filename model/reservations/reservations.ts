import { isLater, type ObservedPod, type Place, type Reservation, type ReservationEnd } from './reservation.ts';

export interface ReservationsOptions<P> {
  /** Whether nothing has to be held for the pod on its node: the report shows its CPUs, or it takes none there. */
  readonly isShown: (node: string, uid: string, pod: P) => boolean;
  /** What is held on a node has changed. */
  readonly onAssumed?: (node: string) => void;
  readonly onEnd?: (reservation: Reservation<P>, end: ReservationEnd) => void;
}

/** What a filter call has answered. */
export interface NewReservation<P> {
  readonly uid: string;
  readonly pod: P;
  /** Empty: every node refused the pod. */
  readonly places: ReadonlyMap<string, Place>;
  /** The pod's resourceVersion as the scheduler knows it. */
  readonly version: string;
  /** When the reservation ends by itself: not before the scheduler has bound the pod or given up on it. */
  readonly expires: number;
}

/**
 * Which pods have been promised room that no report shows yet.
 *
 * Filter calls make reservations; watch events narrow and end them, in whatever order the watches of different kinds come
 * in. Only events of one and the same object are taken to come in order.
 *
 * Invariants
 * - A pod has at most one reservation, and each reservation ends exactly once.
 * - A bound pod that is not terminal and that its node's report has never shown holds a reservation there.
 * - A report speaks for its own node alone: it ends what is held there and nothing that is held elsewhere. A reservation ends
 *   as a whole only once the API server says that the pod is bound to the node whose report shows it.
 * - What the report of a pod's own node has shown once is that report's to say from then on.
 * - News older than a reservation never ends it: what was written before the filter call is of an earlier try.
 *
 * No clock and no I/O: times are seconds of the caller's monotonic clock.
 */
export class Reservations<P> {
  readonly #options: ReservationsOptions<P>;
  readonly #reservations = new Map<string, Reservation<P>>();
  /** Reservations that end by themselves, oldest first. */
  readonly #tentative = new Map<string, Reservation<P>>();
  /** No reservation ends before; the reservation that it was taken from may be gone. */
  #firstEnd = Number.POSITIVE_INFINITY;
  /** By node, oldest first. */
  readonly #assumed = new Map<string, readonly Reservation<P>[]>();
  /** By bound pod. */
  readonly #nodeOf = new Map<string, string>();
  /** Bound pods that a report has shown. */
  readonly #settled = new Set<string>();
  #lastId = 0;

  constructor(options: ReservationsOptions<P>) {
    this.#options = options;
  }

  /** Tentative reservations that may still come to any of several nodes, or to none. */
  get unbound(): number {
    return this.#tentative.size;
  }

  get size(): number {
    return this.#reservations.size;
  }

  /** Reservations of pods that may still come to any of several nodes, or to none. */
  tentative(): Iterable<Reservation<P>> {
    return this.#tentative.values();
  }

  of(uid: string): Reservation<P> | undefined {
    return this.#reservations.get(uid);
  }

  /** Whether the API server says that the pod is bound to the node and has not ended. */
  isBoundTo(uid: string, node: string): boolean {
    return this.#nodeOf.get(uid) === node;
  }

  /** What is held on a node, oldest first, without the reservation of one pod. */
  assumedOn(node: string, except?: string): Reservation<P>[] {
    const reservations = this.#assumed.get(node);
    return reservations === undefined ? [] : reservations.filter(({ uid }) => uid !== except);
  }

  /**
   * A filter call has answered: the pod may come to any of these nodes and to no other. It replaces whatever the pod was
   * promised before.
   */
  reserve({ uid, ...made }: NewReservation<P>): void {
    // The scheduler's cache is behind: nothing it decides about a pod that has a node can take effect.
    if (this.#reservations.get(uid)?.kind === 'bound' || this.#settled.has(uid)) return;
    this.withdraw(uid);
    if (made.places.size === 0) return;
    this.#open({ uid, kind: 'tentative', ...made });
    this.#firstEnd = Math.min(this.#firstEnd, made.expires);
  }

  /** The pod is asked about again, so what it was promised before is off: it must not stand in its own way. */
  withdraw(uid: string): void {
    const reservation = this.#reservations.get(uid);
    if (reservation && reservation.kind !== 'bound') this.#end(reservation, 'filtered-again');
  }

  /** The pod was seen on the watch, or in a list. */
  observe(sight: ObservedPod<P>): void {
    const { uid, node, nominated } = sight;
    if (sight.terminal) this.#gone(uid, 'terminal');
    else if (node !== undefined) this.#sawBound(sight, node);
    else if (nominated !== undefined) this.#sawNominated(sight, nominated);
    else this.#sawWaiting(sight);
  }

  /** The pod is no more. */
  deleted(uid: string): void {
    this.#gone(uid, 'deleted');
  }

  /** A node's report has come in; `shown` are the pods in it. */
  reported(node: string, shown: Iterable<string>): void {
    for (const uid of shown) {
      const reservation = this.#reservations.get(uid);
      if (this.#nodeOf.get(uid) === node) {
        this.#settled.add(uid);
        if (reservation) this.#end(reservation, 'shown');
      } else if (reservation && reservation.kind !== 'bound' && reservation.places.has(node))
        this.#leave(reservation, node);
    }
  }

  /** Ends reservations whose time is over. All are looked at only when one may be: filter calls ask each time. */
  expire(now: number): void {
    if (now < this.#firstEnd) return;
    this.#firstEnd = Number.POSITIVE_INFINITY;
    for (const reservation of this.#tentative.values()) {
      const { expires = 0 } = reservation;
      if (expires > now) this.#firstEnd = Math.min(this.#firstEnd, expires);
      else this.#end(reservation, 'expired');
    }
  }

  #sawBound({ uid, pod, version }: ObservedPod<P>, node: string): void {
    const before = this.#reservations.get(uid);
    this.#nodeOf.set(uid, node);
    if (this.#settled.has(uid) || this.#options.isShown(node, uid, pod)) {
      this.#settled.add(uid);
      if (before) this.#end(before, 'shown');
      return;
    }
    if (before?.kind === 'bound') return;
    if (before?.places.has(node)) this.#narrow(before, node, 'bound');
    else {
      if (before) this.#end(before, 'bound-elsewhere');
      this.#open({ uid, kind: 'bound', pod, places: new Map([[node, undefined]]), version, expires: undefined });
    }
  }

  #sawNominated({ uid, pod, version }: ObservedPod<P>, node: string): void {
    const before = this.#reservations.get(uid);
    if (before?.kind === 'bound' || this.#settled.has(uid)) return;
    if (before && !isLater(version, before.version)) return;
    if (before?.kind === 'nominated' && before.places.has(node)) return;
    if (before?.places.has(node)) {
      this.#narrow(before, node, 'nominated');
      return;
    }
    if (before) this.#end(before, 'bound-elsewhere');
    this.#open({ uid, kind: 'nominated', pod, places: new Map([[node, undefined]]), version, expires: undefined });
  }

  #sawWaiting({ uid, version, dropped }: ObservedPod<P>): void {
    const before = this.#reservations.get(uid);
    if (!before || before.kind === 'bound' || !isLater(version, before.version)) return;
    if (before.kind === 'nominated') this.#end(before, 'nomination-withdrawn');
    else if (dropped) this.#end(before, 'unschedulable');
  }

  #gone(uid: string, end: ReservationEnd): void {
    const reservation = this.#reservations.get(uid);
    if (reservation) this.#end(reservation, end);
    this.#nodeOf.delete(uid);
    this.#settled.delete(uid);
  }

  #open(reservation: Omit<Reservation<P>, 'id'>): void {
    this.#add({ ...reservation, id: ++this.#lastId });
  }

  /** The same reservation, on one of its nodes alone. */
  #narrow(reservation: Reservation<P>, node: string, kind: 'nominated' | 'bound'): void {
    this.#remove(reservation);
    this.#add({ ...reservation, kind, places: new Map([[node, reservation.places.get(node)]]), expires: undefined });
  }

  /**
   * The same reservation without one of its nodes, whose report shows the pod: its CPUs are counted there. The report may be
   * ahead of the pod's own watch, or it may be false: then only its own node is without the reservation.
   */
  #leave(reservation: Reservation<P>, node: string): void {
    const places = new Map(reservation.places);
    places.delete(node);
    const next = { ...reservation, places };
    // Set in place: the order of reservations stays.
    this.#reservations.set(reservation.uid, next);
    if (this.#tentative.has(reservation.uid)) this.#tentative.set(reservation.uid, next);
    for (const other of places.keys()) {
      const there = this.#assumed.get(other) ?? [];
      this.#assumed.set(
        other,
        there.map((one) => (one === reservation ? next : one)),
      );
    }
    this.#release(reservation, node);
  }

  #release({ uid }: Reservation<P>, node: string): void {
    const left = this.#assumed.get(node)?.filter((one) => one.uid !== uid) ?? [];
    if (left.length === 0) this.#assumed.delete(node);
    else this.#assumed.set(node, left);
    this.#options.onAssumed?.(node);
  }

  #end(reservation: Reservation<P>, end: ReservationEnd): void {
    this.#remove(reservation);
    this.#options.onEnd?.(reservation, end);
  }

  #add(reservation: Reservation<P>): void {
    this.#reservations.set(reservation.uid, reservation);
    if (reservation.kind === 'tentative') this.#tentative.set(reservation.uid, reservation);
    for (const node of reservation.places.keys()) {
      const there = this.#assumed.get(node);
      this.#assumed.set(node, there === undefined ? [reservation] : [...there, reservation]);
      this.#options.onAssumed?.(node);
    }
  }

  #remove(reservation: Reservation<P>): void {
    this.#reservations.delete(reservation.uid);
    this.#tentative.delete(reservation.uid);
    for (const node of reservation.places.keys()) this.#release(reservation, node);
  }
}
