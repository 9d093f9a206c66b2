/** Seconds within which a second displacement means that another process keeps setting the threads' CPUs. */
const REPEAT_SECONDS = 60;
/** Seconds without a displacement after which the exact set is enforced again. */
const QUIET_SECONDS = 600;

/**
 * Clear; suspected, for a minute after one displacement (an operator ran taskset); contended, after a second one, until
 * no thread was displaced for the quiet time. @param now monotonic milliseconds
 */
export function createContention(now: () => number) {
  let last = Number.NEGATIVE_INFINITY;
  let isRepeated = false;
  const sinceLast = () => (now() - last) / 1000;
  const isContended = () => isRepeated && sinceLast() < QUIET_SECONDS;

  return {
    /** Call it after each pass with the number of threads that another process had moved since the last pass. */
    note(displaced: number) {
      if (displaced === 0) return;
      isRepeated = isContended() || sinceLast() < REPEAT_SECONDS;
      last = now();
    },
    /** While true, threads are only moved off owned CPUs; other settings of the other process stay. */
    get isContended() {
      return isContended();
    },
    /** Whether one displacement was seen recently and a second one may follow. */
    get isSuspected() {
      return !isRepeated && sinceLast() < REPEAT_SECONDS;
    },
  };
}
