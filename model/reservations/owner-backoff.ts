/**
 * Holds back the pods of an owner whose pods kubelets keep refusing at admission: such a pod stays Failed, its owner
 * creates another at once, and without a limit that repeats forever.
 */

/** Refusals within the window that start a back-off. */
const FAILURES = 3;
/** Seconds in which they count. */
const WINDOW = 60;
/** Seconds that the first hold lasts; each that follows lasts twice as long, up to LONGEST. */
const FIRST_HOLD = 30;
const LONGEST = 600;
/** Owners that are known at a time; of more, the one that failed longest ago is forgotten. */
const MOST_OWNERS = 5000;

interface Owner {
  failures: readonly number[];
  until: number;
  hold: number;
}

/** What refused pods of one owner have led to. Times are seconds of one monotonic clock. */
export class OwnerBackoff {
  readonly #owners = new Map<string, Owner>();

  /**
   * A kubelet has refused a pod of this owner.
   * @returns how many seconds its pods are held back from now on, if this one has started a back-off
   */
  failed(owner: string, now: number): number | undefined {
    const before = this.#owners.get(owner) ?? { failures: [], until: Number.NEGATIVE_INFINITY, hold: 0 };
    const failures = [...before.failures.filter((time) => now - time < WINDOW), now];
    this.#forget(owner);
    if (failures.length < FAILURES || now < before.until) {
      this.#owners.set(owner, { ...before, failures });
      return undefined;
    }
    const hold = Math.min(LONGEST, before.hold === 0 ? FIRST_HOLD : before.hold * 2);
    this.#owners.set(owner, { failures: [], until: now + hold, hold });
    return hold;
  }

  /** Takes the owner out, to be put in as the newest, and makes room. */
  #forget(owner: string): void {
    this.#owners.delete(owner);
    const [oldest] = this.#owners.keys();
    if (this.#owners.size >= MOST_OWNERS && oldest !== undefined) this.#owners.delete(oldest);
  }

  /** Seconds for which this owner's pods are still held back; 0 if they are not. */
  secondsLeft(owner: string, now: number): number {
    return Math.max(0, (this.#owners.get(owner)?.until ?? now) - now);
  }

  /** Forgets owners of whom nothing was heard for long. */
  sweep(now: number): void {
    for (const [owner, { until, failures }] of this.#owners) {
      if (now - Math.max(until, failures.at(-1) ?? until) > LONGEST) this.#owners.delete(owner);
    }
  }
}
