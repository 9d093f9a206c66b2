import type { PodInFlight } from '../../model/placement/needs.ts';
import { alignsOrRefuses, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost, type NodeVerdict, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type ClusterNode, reportsPod } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

/** Characters of all keys together, with CHARACTERS_PER_VERDICT for each verdict. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
const CHARACTERS_PER_VERDICT = 256;
/** A pod can be odd enough for a long key. */
const MAX_KEY_CHARACTERS = 16 * 1024;

interface Options {
  readonly state: Pick<ClusterState, 'fleet' | 'lostPlaces'>;
  readonly unpredictable: UnpredictablePolicy;
}

/**
 * Verdicts of exact predictions, by kind of pod and load of node: equal nodes need one prediction for equal pods.
 *
 * Owner: the namespace of the pod that was predicted first; pods of all namespaces may use it. Age: as long as a node has
 * that load, those pods in flight and those pods that are gone, the verdict is true. End: the namespace needs its room for
 * other verdicts. A namespace has room for as many as are still free for others, so none drops another's. Not kept: with
 * the pod itself in the report.
 */
export class PredictionCache {
  readonly #options: Options;
  readonly #verdicts = new Map<string, NodeVerdict>();
  /** Keys by namespace, oldest first. */
  readonly #owned = new Map<string, { readonly keys: Set<string>; characters: number }>();
  #characters = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  /** @param inFlight the other pods in flight */
  verdict(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): NodeVerdict {
    const key = this.#keyOf(needs, node, inFlight);
    const verdict = (key && this.#verdicts.get(key)) || this.#predict(needs, node, inFlight);
    if (key !== undefined && !this.#verdicts.has(key)) this.#keep(needs.namespace, key, verdict);
    return verdict;
  }

  /** The verdict that needs no prediction. */
  find(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): NodeVerdict | undefined {
    return this.#verdicts.get(this.#keyOf(needs, node, inFlight) ?? '');
  }

  #keyOf(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): string | undefined {
    if (reportsPod(node, needs.request.uid)) return undefined;
    const others = inFlight.map(
      ({ key, promised = true, request: { uid } }) => `${promised} ${reportsPod(node, uid)} ${key}`,
    );
    const key = [needs.key, needs.interfaces, node.load, this.#goneText(node), ...others].join('\0');
    return key.length > MAX_KEY_CHARACTERS ? undefined : key;
  }

  /** What the verdict depends on of pods that are in the report and gone: no other node has them. '' for none. */
  #goneText(node: ClusterNode): string {
    if (node.shape === undefined || !alignsOrRefuses(node.shape.empty)) return '';
    const gone = this.#options.state.lostPlaces.goneFrom(node);
    if (gone.size === 0) return '';
    const left = node.assignments.filter(({ podUID }) => gone.has(podUID));
    return left.map(({ podUID, container, cpus }) => `${podUID} ${container} ${cpus}`).join();
  }

  #keep(namespace: string, key: string, verdict: NodeVerdict): void {
    const usage = this.#owned.get(namespace) ?? { keys: new Set<string>(), characters: 0 };
    this.#owned.set(namespace, usage);
    const characters = key.length + CHARACTERS_PER_VERDICT;
    for (const oldest of usage.keys) {
      if (usage.characters + characters <= MAX_CHARACTERS - this.#characters - characters) break;
      usage.keys.delete(oldest);
      this.#verdicts.delete(oldest);
      this.#count(usage, -(oldest.length + CHARACTERS_PER_VERDICT));
    }
    usage.keys.add(key);
    this.#verdicts.set(key, verdict);
    this.#count(usage, characters);
    if (usage.keys.size === 0) this.#owned.delete(namespace);
  }

  #count(usage: { characters: number }, characters: number): void {
    usage.characters += characters;
    this.#characters += characters;
  }

  #predict(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): NodeVerdict {
    const { state, unpredictable } = this.#options;
    const host = state.fleet.host(node);
    if (host === undefined) throw new RangeError(`node ${node.name} has no report to predict from`);
    const verdict = judgeHost(needs, host, inFlight, unpredictable);
    if (!verdict.fits || !alignsOrRefuses(host)) return verdict;
    // The kubelet has released the CPUs of these pods, or is about to, and may then give the pod another place.
    const gone = state.lostPlaces.goneFrom(node);
    const after = gone.size === 0 ? verdict : judgeHost(needs, withoutPods(host, gone), inFlight, unpredictable);
    return after.fits ? verdict : after;
  }
}
