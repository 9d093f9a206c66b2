import { BoundedMap } from '../../model/bounded-map.ts';
import { alignsOrRefuses, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type NodeVerdict, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type ClusterNode, reportsPod } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

/** Maximum predictions for one kind of pod, and kinds of pods; the oldest are removed first. */
const MAX_LOADS = 1024;
const MAX_KINDS = 16;

interface Options {
  readonly state: Pick<ClusterState, 'fleet' | 'lostPlaces'>;
  readonly unpredictable: UnpredictablePolicy;
}

/** Equal nodes need one prediction. Not cached: with pods in flight, or with the pod itself in the report. */
export class PredictionCache {
  readonly #options: Options;
  readonly #kinds = new BoundedMap<string, BoundedMap<string, NodeVerdict>>(MAX_KINDS);

  constructor(options: Options) {
    this.#options = options;
  }

  /** @param assumed the other pods in flight */
  verdict(needs: PodNeeds, node: ClusterNode, assumed: readonly PodNeeds[]): NodeVerdict {
    const { shape } = node;
    const { lostPlaces } = this.#options.state;
    const depends = shape !== undefined && alignsOrRefuses(shape.empty) && lostPlaces.goneFrom(node).size > 0;
    if (assumed.length > 0 || depends || reportsPod(node, needs.request.uid))
      return this.#predict(needs, node, assumed);
    return this.#kinds
      .getOrCreate(needs.key + needs.interfaces, () => new BoundedMap(MAX_LOADS))
      .getOrCreate(node.load, () => this.#predict(needs, node, []));
  }

  #predict(needs: PodNeeds, node: ClusterNode, assumed: readonly PodNeeds[]): NodeVerdict {
    const { state, unpredictable } = this.#options;
    const host = state.fleet.host(node);
    if (host === undefined) throw new RangeError(`node ${node.name} has no report to predict from`);
    const verdict = judgeHost(needs, host, assumed, unpredictable);
    if (!verdict.fits || !alignsOrRefuses(host)) return verdict;
    // The kubelet has released the CPUs of these pods, or is about to, and may then give the pod another place.
    const gone = state.lostPlaces.goneFrom(node);
    const after = gone.size === 0 ? verdict : judgeHost(needs, withoutPods(host, gone), assumed, unpredictable);
    return after.fits ? verdict : after;
  }
}
