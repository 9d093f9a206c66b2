import type { RefusedStart } from '../../kube/node-topology.ts';

/** A pod by what a refusal names it with. */
export interface RefusedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Pods that a node's own agent refused to let start, from that node's report only: the author of an image can forge a
 * container's status. Until the node's next report, pods with the same needs would come to the same end there.
 */
export class RefusedStartsByNode {
  /** By node: what its newest report says, by namespace/name. */
  readonly #reported = new Map<string, ReadonlyMap<string, RefusedStart>>();
  /** By node: the keys of needs that are new in its newest report. */
  readonly #keys = new Map<string, Set<string>>();

  /** The node has reported: what followed from its report before is over. Returns the pods that are refused since. */
  reported(node: string, refusals: readonly RefusedStart[]): ReadonlySet<string> {
    const before = this.#reported.get(node);
    this.#keys.delete(node);
    if (refusals.length === 0) this.#reported.delete(node);
    else this.#reported.set(node, new Map(refusals.map((one) => [`${one.namespace}/${one.podName}`, one])));
    const fresh = refusals.map((one) => [`${one.namespace}/${one.podName}`, one.podUID] as const);
    return new Set(fresh.flatMap(([key, uid]) => (isSame(before?.get(key), uid) ? [] : [key])));
  }

  /** Why the pod's container was kept from starting on the node that it is bound to, or undefined. */
  of(node: string, { uid, namespace, name }: RefusedPod): string | undefined {
    const refusal = this.#reported.get(node)?.get(`${namespace}/${name}`);
    return refusal === undefined || (refusal.podUID ?? uid) !== uid ? undefined : refusal.message;
  }

  /** Pods with these needs are refused on the node. */
  add(node: string, key: string): void {
    const keys = this.#keys.get(node);
    if (keys) keys.add(key);
    else this.#keys.set(node, new Set([key]));
  }

  get any(): boolean {
    return this.#keys.size > 0;
  }

  has(node: string, key: string): boolean {
    return this.#keys.get(node)?.has(key) ?? false;
  }
}

function isSame(before: RefusedStart | undefined, uid: string | undefined): boolean {
  return before !== undefined && before.podUID === uid;
}
