/** Seconds within which a second displacement means that another process keeps setting the threads' CPUs. */
const REPEAT_SECONDS = 60;
/** Seconds without a displacement after which the exact set is enforced again: initially and at most. */
const QUIET_SECONDS = { first: 60, most: 3600 };

/**
 * Detects whether another process also sets the CPUs of the threads, since the two would keep undoing each other's
 * work.
 *
 * States: clear; suspected, for a minute after one displacement (an operator ran taskset); contended, after a second
 * one, until no thread was displaced for the quiet time. The quiet time doubles each time the other process is still
 * active. It is a minute again after two hours without displacement.
 * @param now monotonic milliseconds
 */
export function createContention(now: () => number) {
  let last = Number.NEGATIVE_INFINITY;
  let isContended = false;
  let quiet = QUIET_SECONDS.first;
  const sinceLast = () => (now() - last) / 1000;

  return {
    /** Call it after each pass with the number of threads that another process had moved since the last pass. */
    note(displaced: number) {
      const since = sinceLast();
      if (isContended && since >= quiet) {
        isContended = false;
        quiet = Math.min(2 * quiet, QUIET_SECONDS.most);
      } else if (!isContended && since >= 2 * QUIET_SECONDS.most) quiet = QUIET_SECONDS.first;
      if (displaced === 0) return;
      if (since < REPEAT_SECONDS) isContended = true;
      last = now();
    },
    /** While true, threads are only moved off owned CPUs; other settings of the other process stay. */
    get isContended() {
      return isContended && sinceLast() < quiet;
    },
    /** Whether one displacement was seen recently and a second one may follow. */
    get isSuspected() {
      return !isContended && sinceLast() < REPEAT_SECONDS;
    },
  };
}
