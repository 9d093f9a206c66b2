/** Where others are in flight, so much of what looks free is left to each of them. */
const SHARE = 4;

/**
 * How many nodes to answer, and so to reserve, for one pod.
 *
 * Every node answered is held until it is known which one it will be, so while others are in flight a pod gets no more
 * than a small share of the nodes that could take it. In a small or crowded cluster that comes to one node a pod, and
 * then what is promised is exactly what fits; alone, a pod leaves the scheduler the whole choice.
 *
 * @param most where no other pod is in flight
 * @param candidates nodes that look as if they could take the pod
 * @param others pods with open reservations, and calls that wait
 */
export function answerLimit(most: number, candidates: number, others: number): number {
  if (others === 0) return most;
  return Math.max(1, Math.min(most, Math.floor(candidates / (SHARE * (others + 1)))));
}
