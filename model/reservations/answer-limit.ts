/** While others are in flight, a pod gets one SHAREth of its even part of the candidate nodes. */
const SHARE = 4;

/**
 * The number of nodes to return, and therefore to reserve, for one pod.
 *
 * Every returned node is reserved until the scheduler has chosen one. While other pods are in flight, a pod therefore
 * gets only a small share of the nodes that could run it. In a small or full cluster that is one node for each pod, and
 * the reservations then match the available room exactly. A pod that is alone leaves the whole choice to the scheduler.
 *
 * @param most limit if no other pod is in flight
 * @param candidates nodes that seem able to run the pod
 * @param others pods with open reservations, and waiting calls
 */
export function answerLimit(most: number, candidates: number, others: number): number {
  if (others === 0) return most;
  return Math.max(1, Math.min(most, Math.floor(candidates / (SHARE * (others + 1)))));
}
