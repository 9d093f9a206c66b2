/** Seconds within which a second displacement means that something goes on setting the threads' CPUs. */
const TWICE_WITHIN = 60;
/** Seconds without a displacement after which the exact set is kept again: the first time, and at most. */
const QUIET = { first: 60, most: 3600 };

/** Whether another process sets the CPUs of the threads too, so that keeping an exact set would be a fight. */
export interface Contention {
  /** To be called after each pass with the number of threads that were elsewhere than the last pass left them. */
  note(displaced: number): void;
  /** While true, threads are only moved off owned CPUs; whatever else the other writer sets is left as it is. */
  readonly isContended: boolean;
  /** Whether one displacement was seen and a second one is still to be looked for. */
  readonly isSuspected: boolean;
}

/**
 * States: clear; suspected, for a minute after one displacement (an operator ran taskset); contended, after a second
 * one, until nothing was displaced for the quiet time. That doubles each time the other writer turns out to be there
 * still, and is a minute again after two hours in which it was not.
 *
 * @param now monotonic milliseconds
 */
export function createContention(now: () => number): Contention {
  let last = Number.NEGATIVE_INFINITY;
  let isContended = false;
  let quiet = QUIET.first;
  const sinceLast = () => (now() - last) / 1000;

  return {
    note(displaced) {
      const since = sinceLast();
      if (isContended && since >= quiet) {
        isContended = false;
        quiet = Math.min(2 * quiet, QUIET.most);
      } else if (!isContended && since >= 2 * QUIET.most) quiet = QUIET.first;
      if (displaced === 0) return;
      if (since < TWICE_WITHIN) isContended = true;
      last = now();
    },
    get isContended() {
      return isContended && sinceLast() < quiet;
    },
    get isSuspected() {
      return !isContended && sinceLast() < TWICE_WITHIN;
    },
  };
}
