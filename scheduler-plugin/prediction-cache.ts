import type { Fleet } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';
import { judgeHost, type NodeVerdict, type UnpredictablePolicy } from './verdict.ts';

/** Predictions kept; the oldest go first. */
const KEPT = 4096;

/**
 * Predictions by what they depend on: the pod's needs, the node's shape and the CPUs that are owned there. Nodes of one
 * make that are equally full are predicted once, and so is a node that is asked about for one pod after another. With
 * pods in flight on the node, or the pod itself in the report, nothing is shared.
 */
export function createPredictions(
  fleet: Fleet,
  policy: UnpredictablePolicy,
  heldNeeds: (id: number, needs: PodNeeds) => readonly PodNeeds[],
) {
  const kept = new Map<string, NodeVerdict>();

  return (needs: PodNeeds, id: number): NodeVerdict => {
    const host = fleet.host(id);
    if (host === undefined) throw new RangeError(`node ${fleet.names.nameOf(id)} has no report to predict from`);
    const held = fleet.held(id) > 0 ? heldNeeds(id, needs) : [];
    if (held.length > 0 || host.shown.has(needs.request.uid)) return judgeHost(needs, host, held, policy);
    const key = `${fleet.shape(id)?.id} ${fleet.owned(id)} ${needs.key}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const verdict = judgeHost(needs, host, [], policy);
    const [oldest] = kept.keys();
    if (kept.size >= KEPT && oldest !== undefined) kept.delete(oldest);
    kept.set(key, verdict);
    return verdict;
  };
}
