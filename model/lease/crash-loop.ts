/**
 * If OVN-Kubernetes writes a DPU's lease, its host side renews it once at each start. The kubelet restarts a host side
 * that crashes in a loop: at once, then after 10 s, 20 s, 40 s and so on up to 300 s (CrashLoopBackOff).
 */

/** First and longest back-off of the kubelet, in seconds. */
const FIRST_BACKOFF = 10;
const LONGEST_BACKOFF = 300;

/**
 * Number of consecutive renewals, each within a lease duration of the previous one, of which at least one must come
 * from the DPU. Above a duration of 300 s no number is enough.
 * @param duration seconds that one renewal counts
 */
export function renewalsBeyondRestarts(duration: number): number {
  // The start, the restart at once, and the restarts whose back-off is shorter than the duration.
  let restarts = 2;
  for (let wait = FIRST_BACKOFF; wait < Math.min(duration, LONGEST_BACKOFF); wait *= 2) restarts++;
  return restarts + 1;
}
