import { type Claim, type ClaimEnd, isLater, type Place, type PodSight } from './claim.ts';

export interface LedgerOptions<P> {
  /** Whether nothing has to be held for the pod on its node: the report shows its CPUs, or it takes none there. */
  readonly isShown: (node: string, uid: string, pod: P) => boolean;
  /** What is held on a node has changed. */
  readonly onHeld?: (node: string) => void;
  readonly onEnd?: (claim: Claim<P>, end: ClaimEnd) => void;
}

/** What a filter call has answered. */
export interface NewPromise<P> {
  readonly uid: string;
  readonly pod: P;
  /** Empty: every node refused the pod. */
  readonly places: ReadonlyMap<string, Place>;
  /** The pod's resourceVersion as the scheduler knows it. */
  readonly version: string;
  /** When the promise ends by itself: not before the scheduler has bound the pod or given up on it. */
  readonly expires: number;
}

/**
 * Which pods have been promised room that no report shows yet.
 *
 * Filter calls make promises; watch events narrow and end them, in whatever order the watches of different kinds come
 * in. Only events of one and the same object are taken to come in order.
 *
 * Invariants
 * - A pod has at most one claim, and each claim ends exactly once.
 * - A bound pod that is not terminal and that its node's report has never shown holds a claim there.
 * - A report speaks for its own node alone: it ends what is held there and nothing that is held elsewhere. A claim ends
 *   as a whole only once the API server says that the pod is bound to the node whose report shows it.
 * - What the report of a pod's own node has shown once is that report's to say from then on.
 * - News older than a promise never ends it: a refusal that was written before the filter call is of an earlier try.
 *
 * No clock and no I/O: times are seconds of the caller's monotonic clock.
 */
export class Ledger<P> {
  readonly #options: LedgerOptions<P>;
  readonly #claims = new Map<string, Claim<P>>();
  /** Claims that end by themselves, oldest first. */
  readonly #promised = new Map<string, Claim<P>>();
  /** No promise ends before; the promise that it was taken from may be gone. */
  #firstEnd = Number.POSITIVE_INFINITY;
  /** By node, oldest first. */
  readonly #held = new Map<string, readonly Claim<P>[]>();
  /** Bound pods by node. */
  readonly #bound = new Map<string, Set<string>>();
  readonly #nodeOf = new Map<string, string>();
  /** Bound pods that a report has shown. */
  readonly #settled = new Set<string>();
  #lastId = 0;

  constructor(options: LedgerOptions<P>) {
    this.#options = options;
  }

  /** Promises that may still come to any of several nodes, or to none. */
  get unbound(): number {
    return this.#promised.size;
  }

  get size(): number {
    return this.#claims.size;
  }

  /** Claims of pods that may still come to any of several nodes, or to none. */
  promises(): Iterable<Claim<P>> {
    return this.#promised.values();
  }

  claimOf(uid: string): Claim<P> | undefined {
    return this.#claims.get(uid);
  }

  /** Whether the API server says that the pod is bound to the node and has not ended. */
  isBoundTo(uid: string, node: string): boolean {
    return this.#nodeOf.get(uid) === node;
  }

  /** What is held on a node, oldest first, without the claim of one pod. */
  heldOn(node: string, except?: string): Claim<P>[] {
    const claims = this.#held.get(node);
    return claims === undefined ? [] : claims.filter(({ uid }) => uid !== except);
  }

  /**
   * A filter call has answered: the pod may come to any of these nodes and to no other. It replaces whatever the pod was
   * promised before.
   */
  promise({ uid, ...made }: NewPromise<P>): void {
    // The scheduler's cache is behind: nothing it decides about a pod that has a node can take effect.
    if (this.#claims.get(uid)?.kind === 'bound' || this.#settled.has(uid)) return;
    this.withdraw(uid);
    if (made.places.size === 0) return;
    this.#open({ uid, kind: 'promised', ...made });
    this.#firstEnd = Math.min(this.#firstEnd, made.expires);
  }

  /** The pod is asked about again, so what it was promised before is off: it must not stand in its own way. */
  withdraw(uid: string): void {
    const claim = this.#claims.get(uid);
    if (claim && claim.kind !== 'bound') this.#end(claim, 'filtered-again');
  }

  /** The pod was seen on the watch, or in a list. */
  observe(sight: PodSight<P>): void {
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
      const claim = this.#claims.get(uid);
      if (this.#nodeOf.get(uid) === node) {
        this.#settled.add(uid);
        if (claim) this.#end(claim, 'shown');
      } else if (claim && claim.kind !== 'bound' && claim.places.has(node)) this.#leave(claim, node);
    }
  }

  /** Ends promises whose time is over. All are looked at only when one may be: filter calls ask each time. */
  expire(now: number): void {
    if (now < this.#firstEnd) return;
    this.#firstEnd = Number.POSITIVE_INFINITY;
    for (const claim of this.#promised.values()) {
      const { expires = 0 } = claim;
      if (expires > now) this.#firstEnd = Math.min(this.#firstEnd, expires);
      else this.#end(claim, 'expired');
    }
  }

  #sawBound({ uid, pod, version }: PodSight<P>, node: string): void {
    const before = this.#claims.get(uid);
    this.#bind(uid, node);
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

  #sawNominated({ uid, pod, version }: PodSight<P>, node: string): void {
    const before = this.#claims.get(uid);
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

  #sawWaiting({ uid, version, unscheduled }: PodSight<P>): void {
    const before = this.#claims.get(uid);
    if (!before || before.kind === 'bound' || !isLater(version, before.version)) return;
    if (before.kind === 'nominated') this.#end(before, 'nomination-withdrawn');
    else if (unscheduled) this.#end(before, 'unschedulable');
  }

  #gone(uid: string, end: ClaimEnd): void {
    const claim = this.#claims.get(uid);
    if (claim) this.#end(claim, end);
    const node = this.#nodeOf.get(uid);
    if (node !== undefined) {
      const there = this.#bound.get(node);
      there?.delete(uid);
      if (there?.size === 0) this.#bound.delete(node);
    }
    this.#nodeOf.delete(uid);
    this.#settled.delete(uid);
  }

  #bind(uid: string, node: string): void {
    if (this.#nodeOf.get(uid) === node) return;
    this.#nodeOf.set(uid, node);
    const there = this.#bound.get(node);
    if (there) there.add(uid);
    else this.#bound.set(node, new Set([uid]));
  }

  #open(claim: Omit<Claim<P>, 'id'>): void {
    this.#add({ ...claim, id: ++this.#lastId });
  }

  /** The same claim, on one of its nodes alone. */
  #narrow(claim: Claim<P>, node: string, kind: 'nominated' | 'bound'): void {
    this.#remove(claim);
    this.#add({ ...claim, kind, places: new Map([[node, claim.places.get(node)]]), expires: undefined });
  }

  /**
   * The same claim without one of its nodes, whose report shows the pod: its CPUs are counted there. The report may be
   * ahead of the pod's own watch, or it may be false: then only its own node is without the claim.
   */
  #leave(claim: Claim<P>, node: string): void {
    const places = new Map(claim.places);
    places.delete(node);
    const next = { ...claim, places };
    // Set in place: the order of promises stays.
    this.#claims.set(claim.uid, next);
    if (this.#promised.has(claim.uid)) this.#promised.set(claim.uid, next);
    for (const other of places.keys()) {
      const there = this.#held.get(other) ?? [];
      this.#held.set(
        other,
        there.map((one) => (one === claim ? next : one)),
      );
    }
    this.#release(claim, node);
  }

  #release({ uid }: Claim<P>, node: string): void {
    const left = this.#held.get(node)?.filter((one) => one.uid !== uid) ?? [];
    if (left.length === 0) this.#held.delete(node);
    else this.#held.set(node, left);
    this.#options.onHeld?.(node);
  }

  #end(claim: Claim<P>, end: ClaimEnd): void {
    this.#remove(claim);
    this.#options.onEnd?.(claim, end);
  }

  #add(claim: Claim<P>): void {
    this.#claims.set(claim.uid, claim);
    if (claim.kind === 'promised') this.#promised.set(claim.uid, claim);
    for (const node of claim.places.keys()) {
      const there = this.#held.get(node);
      this.#held.set(node, there === undefined ? [claim] : [...there, claim]);
      this.#options.onHeld?.(node);
    }
  }

  #remove(claim: Claim<P>): void {
    this.#claims.delete(claim.uid);
    this.#promised.delete(claim.uid);
    for (const node of claim.places.keys()) this.#release(claim, node);
  }
}
