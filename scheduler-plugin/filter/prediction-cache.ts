import { alignsOrRefuses, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type NodeVerdict, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

/** Maximum predictions for one kind of pod, and kinds of pods; the oldest are removed first. */
const KEPT = 1024;
const KINDS = 16;

/**
 * Caches predictions by their inputs: the pod's needs, the node's shape and the owned CPUs. Nodes of the same shape
 * with the same owned CPUs need only one prediction. A node that is checked for similar pods one after the other needs
 * only one, too. Predictions for a node with pods in flight, or with the pod itself in the report, are not cached.
 */
export function createPredictions(
  fleet: Fleet,
  policy: UnpredictablePolicy,
  assumedNeeds: (id: number, needs: PodNeeds) => readonly PodNeeds[],
  goneFrom: (id: number) => ReadonlySet<string>,
) {
  const kinds = new Map<string, Map<string, NodeVerdict>>();

  const predict = (needs: PodNeeds, id: number, assumed: readonly PodNeeds[]): NodeVerdict => {
    const host = fleet.host(id);
    if (host === undefined) throw new RangeError(`node ${fleet.names.nameOf(id)} has no report to predict from`);
    const verdict = judgeHost(needs, host, assumed, policy);
    if (!verdict.fits || !alignsOrRefuses(host)) return verdict;
    // The kubelet has released the CPUs of these pods, or is about to, and may then give the pod another place.
    const gone = goneFrom(id);
    const after = gone.size === 0 ? verdict : judgeHost(needs, withoutPods(host, gone), assumed, policy);
    return after.fits ? verdict : after;
  };
  return (needs: PodNeeds, id: number): NodeVerdict => {
    const assumed = fleet.assumed(id) > 0 ? assumedNeeds(id, needs) : [];
    const shape = fleet.shape(id);
    const depends = shape !== undefined && alignsOrRefuses(shape.empty) && goneFrom(id).size > 0;
    if (assumed.length > 0 || depends || fleet.shows(id, needs.request.uid)) return predict(needs, id, assumed);
    const kind = needs.key + needs.interfaces;
    const kept = kinds.get(kind) ?? new Map<string, NodeVerdict>();
    if (kept.size === 0) remember(kinds, kind, kept, KINDS);
    const load = fleet.load(id);
    const known = kept.get(load);
    if (known !== undefined) return known;
    const verdict = predict(needs, id, []);
    remember(kept, load, verdict, KEPT);
    return verdict;
  };
}

function remember<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  const [oldest] = map.keys();
  if (map.size >= most && oldest !== undefined) map.delete(oldest);
  map.set(key, value);
}
