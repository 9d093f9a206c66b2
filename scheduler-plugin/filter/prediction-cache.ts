import { BoundedMap } from '../../model/bounded-map.ts';
import { type MaskRequest, maskRequestKey } from '../../model/launcher/mask-request.ts';
import { judgeMask, maskHostOf } from '../../model/placement/mask-fit.ts';
import { alignsOrRefuses, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type NodeVerdict, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { type ClusterNode, type Fleet, ownedCpusOf, reportsPod } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

/** Maximum predictions for one kind of pod, and kinds of pods; the oldest are removed first. */
const MAX_LOADS = 1024;
const MAX_KINDS = 16;

/**
 * Caches predictions by their inputs: the pod's needs, the node's shape and its CPUs, devices and memory in use. Nodes
 * that are equal in these need only one prediction. A node that is checked for similar pods one after the other needs
 * only one, too. Predictions for a node with pods in flight, or with the pod itself in the report, are not cached.
 */
export function createPredictions(
  fleet: Pick<Fleet, 'host'>,
  policy: UnpredictablePolicy,
  assumedNeeds: (node: ClusterNode, needs: PodNeeds) => readonly PodNeeds[],
  goneFrom: (node: ClusterNode) => ReadonlySet<string>,
) {
  const kinds = new BoundedMap<string, BoundedMap<string, NodeVerdict>>(MAX_KINDS);

  const predict = (needs: PodNeeds, node: ClusterNode, assumed: readonly PodNeeds[]): NodeVerdict => {
    const host = fleet.host(node);
    if (host === undefined) throw new RangeError(`node ${node.name} has no report to predict from`);
    const verdict = judgeHost(needs, host, assumed, policy);
    if (!verdict.fits || !alignsOrRefuses(host)) return verdict;
    // The kubelet has released the CPUs of these pods, or is about to, and may then give the pod another place.
    const gone = goneFrom(node);
    const after = gone.size === 0 ? verdict : judgeHost(needs, withoutPods(host, gone), assumed, policy);
    return after.fits ? verdict : after;
  };
  return (needs: PodNeeds, node: ClusterNode): NodeVerdict => {
    const assumed = node.reservations > 0 ? assumedNeeds(node, needs) : [];
    const { shape } = node;
    const depends = shape !== undefined && alignsOrRefuses(shape.empty) && goneFrom(node).size > 0;
    if (assumed.length > 0 || depends || reportsPod(node, needs.request.uid)) return predict(needs, node, assumed);
    const kind = needs.key + needs.interfaces;
    return kinds
      .getOrCreate(kind, () => new BoundedMap(MAX_LOADS))
      .getOrCreate(node.load, () => predict(needs, node, []));
  };
}

/** Maximum mask requests, and node states for each. */
const MAX_REQUESTS = 32;
const MAX_STATES = 4096;

/**
 * The verdict of a node that has reported on a VM's CPU mask. Nodes of the same model whose pods own the same CPUs are
 * judged once.
 */
export function createMaskVerdicts(): (maskRequest: MaskRequest, node: ClusterNode) => NodeVerdict {
  const verdicts = new BoundedMap<string, BoundedMap<string, NodeVerdict>>(MAX_REQUESTS);

  const judge = (maskRequest: MaskRequest, node: ClusterNode): NodeVerdict => {
    if (node.shape === undefined) throw new RangeError(`node ${node.name} has not reported its CPUs`);
    return judgeMask(maskRequest, maskHostOf({ ...node.shape.empty, owned: ownedCpusOf(node) }));
  };
  return (maskRequest, node) =>
    verdicts
      .getOrCreate(maskRequestKey(maskRequest), () => new BoundedMap(MAX_STATES))
      .getOrCreate(node.load, () => judge(maskRequest, node));
}
