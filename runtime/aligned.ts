/**
 * Milliseconds until the next multiple of the period on this process's clock, at least half a period from now. Periodic
 * work of several duties that waits this long is due at the same times, so one wake-up serves all of it: an idle agent
 * spends more on waking up than on its checks.
 *
 * @param seconds the period
 * @param now monotonic milliseconds
 */
export function untilAligned(seconds: number, now = performance.now()): number {
  const period = seconds * 1000;
  return Math.ceil((now + period / 2) / period) * period - now;
}

/** Repeats the work at the multiples of a period. @returns a function that ends it */
export function everyAligned(seconds: number, work: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  const wait = () => {
    timer = setTimeout(() => {
      if (ended) return;
      wait();
      work();
    }, untilAligned(seconds));
  };
  wait();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
