import type { Kubelet } from '../kubelet/kubelet.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { alignsOrRefuses, type PlacementHost, type PlacementNeeds, unpredictableFor, withoutPods } from './needs.ts';
import { judge } from './place.ts';

/**
 * Pods bound to a node, and not yet in its report, that its kubelet would now refuse or place on unsuitable CPUs if it
 * admits them in the order of their binding.
 *
 * All of them fitted in every order when their room was reserved. If the kubelet aligns (restricted, single-numa-node),
 * a pod that ends can change the place of a pod in flight, so that another no longer fits. Only the order of binding
 * counts here: an eviction delays the pod's start, and an order that may not happen does not justify that.
 *
 * @param pods in the order of their binding
 * @param gone pods in the report that have ended since, as far as is known. A place counts as lost only if it is lost
 * with and without them.
 */
export function lostPlaces(
  node: PlacementHost,
  pods: readonly PlacementNeeds[],
  gone: ReadonlySet<string>,
): ReadonlySet<string> {
  const { kubelet, state } = node;
  if ('unpredictable' in kubelet || !state || !alignsOrRefuses(node)) return NONE;
  const lost = refusedInOrder(node, kubelet, state, pods);
  if (lost.size === 0 || gone.size === 0) return lost;
  const after = withoutPods(node, gone);
  const lostAfter = after.state ? refusedInOrder(after, kubelet, after.state, pods) : NONE;
  return new Set([...lost].filter((uid) => lostAfter.has(uid)));
}

const NONE: ReadonlySet<string> = new Set();
/**
 * Number of pods to predict: on the largest hosts (512 CPUs, 8 NUMA nodes) each takes milliseconds. Further ones follow
 * when the report contains the first.
 */
const MOST = 8;
/** The same for a host with more than FEW NUMA nodes, because a prediction tries their combinations. */
const MOST_OF_MANY = 2;
const FEW = 4;

function refusedInOrder(
  node: PlacementHost,
  kubelet: Kubelet,
  start: KubeletState,
  pods: readonly PlacementNeeds[],
): ReadonlySet<string> {
  const refused = new Set<string>();
  const most = node.host.cells.length > FEW ? MOST_OF_MANY : MOST;
  let state = start;
  for (const pod of pods.slice(0, most)) {
    if (start.assignments.has(pod.request.uid) || unpredictableFor(pod, node) !== undefined) continue;
    const verdict = judge(pod, node, kubelet, state);
    if ('reason' in verdict) refused.add(pod.request.uid);
    else state = verdict.admission.state;
  }
  return refused;
}
