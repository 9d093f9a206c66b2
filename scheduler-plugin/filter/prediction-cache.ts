import { alignsOrRefuses, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type NodeVerdict, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

/** Predictions kept for one kind of pod, and kinds of pods; the oldest go first. */
const KEPT = 1024;
const KINDS = 16;

/**
 * Predictions by what they depend on: the pod's needs, the node's shape and the CPUs that are owned there. Equal nodes
 * that are equally full are predicted once. A node for which one pod after another is checked is predicted once, too.
 * With pods in flight on the node, or the pod itself in the report, nothing is shared.
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
    // The kubelet has let go of these already or is about to, and may give the pod another place then.
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
