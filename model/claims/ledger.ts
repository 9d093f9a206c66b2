import { type Claim, type ClaimEnd, isLater, type Place, type PodSight } from './claim.ts';

export interface LedgerOptions<P> {
  /** Seconds that a promise to an unbound pod lasts at the most. */
  readonly promiseSeconds: number;
  /** Whether a node's report shows the pod: then its CPUs are counted there. */
  readonly isShown: (node: string, uid: string) => boolean;
  /** What is held on a node has changed. */
  readonly onHeld?: (node: string) => void;
  readonly onEnd?: (claim: Claim<P>, end: ClaimEnd) => void;
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
 * - What a report has shown once is the report's to tell from then on.
 * - News older than a promise never ends it: a refusal that was written before the filter call is of an earlier try.
 *
 * No clock and no I/O: times are seconds of the caller's monotonic clock.
 */
export class Ledger<P> {
  readonly #options: LedgerOptions<P>;
  readonly #claims = new Map<string, Claim<P>>();
  /** Claims that end by themselves, oldest first. */
  readonly #promised = new Map<string, Claim<P>>();
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

  claimOf(uid: string): Claim<P> | undefined {
    return this.#claims.get(uid);
  }

  /** What is held on a node, oldest first, without the claim of one pod. */
  heldOn(node: string, except?: string): Claim<P>[] {
    const claims = this.#held.get(node);
    return claims === undefined ? [] : claims.filter(({ uid }) => uid !== except);
  }

  /**
   * A filter call has answered: the pod may come to any of these nodes and to no other.
   * @param places empty: it was refused everywhere, and whatever it was promised before is off
   * @param version the pod's resourceVersion as the scheduler knows it
   */
  promise(uid: string, pod: P, places: ReadonlyMap<string, Place>, version: string, now: number): void {
    // The scheduler's cache is behind: nothing it decides about a pod that has a node can take effect.
    if (this.#claims.get(uid)?.kind === 'bound' || this.#settled.has(uid)) return;
    this.withdraw(uid);
    if (places.size === 0) return;
    this.#open({ uid, kind: 'promised', pod, places, version, expires: now + this.#options.promiseSeconds });
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
      if (claim === undefined) {
        if (this.#nodeOf.get(uid) === node) this.#settled.add(uid);
        continue;
      }
      // The report may be ahead of the pod's own watch: the kubelet has it, so it is bound.
      this.#settled.add(uid);
      this.#bind(uid, node);
      this.#end(claim, 'shown');
    }
  }

  /** Ends promises whose time is over, and says when the next one's is. */
  expire(now: number): number | undefined {
    for (const claim of this.#promised.values()) {
      const { expires = 0 } = claim;
      if (expires > now) return expires;
      this.#end(claim, 'expired');
    }
    return undefined;
  }

  #sawBound({ uid, pod, version }: PodSight<P>, node: string): void {
    const before = this.#claims.get(uid);
    this.#bind(uid, node);
    if (this.#settled.has(uid) || this.#options.isShown(node, uid)) {
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
    for (const node of claim.places.keys()) {
      const left = this.#held.get(node)?.filter(({ uid }) => uid !== claim.uid) ?? [];
      if (left.length === 0) this.#held.delete(node);
      else this.#held.set(node, left);
      this.#options.onHeld?.(node);
    }
  }
}
