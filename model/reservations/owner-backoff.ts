/**
 * Delays the pods of an owner whose pods kubelets keep refusing at admission. Such a pod stays Failed and its owner
 * creates another at once; without a limit that repeats forever.
 */

/** Number of refusals within the window that starts a back-off. */
const FAILURES = 3;
/** Length of the window in seconds. */
const WINDOW = 60;
/** Seconds of the first delay; each further one is twice as long, up to LONGEST. */
const FIRST_HOLD = 30;
const LONGEST = 600;
/** Limit of tracked owners; beyond it, the owner whose last failure is oldest is dropped. */
const MOST_OWNERS = 5000;

interface Owner {
  failures: readonly number[];
  until: number;
  hold: number;
}

/** Delays for owners of refused pods. Times are seconds of one monotonic clock. */
export class OwnerBackoff {
  readonly #owners = new Map<string, Owner>();

  /**
   * Records that a kubelet has refused a pod of this owner.
   * @returns the seconds for which its pods are delayed from now on, if this refusal has started a back-off
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

  /** Removes the owner, so that it can be added again as the newest, and makes room. */
  #forget(owner: string): void {
    this.#owners.delete(owner);
    const [oldest] = this.#owners.keys();
    if (this.#owners.size >= MOST_OWNERS && oldest !== undefined) this.#owners.delete(oldest);
  }

  /** Seconds for which this owner's pods are still delayed; 0 if they are not. */
  secondsLeft(owner: string, now: number): number {
    return Math.max(0, (this.#owners.get(owner)?.until ?? now) - now);
  }

  /** Drops owners without recent refusals. */
  sweep(now: number): void {
    for (const [owner, { until, failures }] of this.#owners) {
      if (now - Math.max(until, failures.at(-1) ?? until) > LONGEST) this.#owners.delete(owner);
    }
  }
}
