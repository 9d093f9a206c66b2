/**
 * Where OVN-Kubernetes writes a DPU's lease, its host side renews it once at each start. A host side that crashes in a loop
 * is started again by the kubelet: at once, then after 10 s, 20 s, 40 s and so on up to 300 s (CrashLoopBackOff).
 */

/** Seconds of the kubelet's first back-off, and of its longest. */
const FIRST_BACKOFF = 10;
const LONGEST_BACKOFF = 300;

/**
 * Renewals in a row, each within a lease's duration of the one before, of which at least one is the DPU's own.
 * Above 300 s of duration no number is enough.
 * @param duration seconds that one renewal counts
 */
export function renewalsBeyondRestarts(duration: number): number {
  // The start, the restart at once, and those whose back-off is shorter than the duration.
  let restarts = 2;
  for (let wait = FIRST_BACKOFF; wait < Math.min(duration, LONGEST_BACKOFF); wait *= 2) restarts++;
  return restarts + 1;
}
