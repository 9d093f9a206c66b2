import type { RefusedStart } from '../../kube/node-topology.ts';

/** The fields of a pod that a refusal contains. */
export interface RefusedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Pods that a node's own agent refused to start, from that node's report only: the author of an image can forge a
 * container's status. Until the node's next report, pods with the same needs would fail there, too.
 */
export class RefusedStartsByNode {
  /** The refusals in each node's newest report, by namespace/name. */
  readonly #reported = new Map<string, ReadonlyMap<string, RefusedStart>>();
  /** Keys of the needs that are new in each node's newest report. */
  readonly #keys = new Map<string, Set<string>>();

  /** Replaces the refusals of the node by those of a new report. @returns the newly refused pods */
  reported(node: string, refusals: readonly RefusedStart[]): ReadonlySet<string> {
    const before = this.#reported.get(node);
    this.#keys.delete(node);
    if (refusals.length === 0) this.#reported.delete(node);
    else this.#reported.set(node, new Map(refusals.map((one) => [`${one.namespace}/${one.podName}`, one])));
    const fresh = refusals.map((one) => [`${one.namespace}/${one.podName}`, one.podUID] as const);
    return new Set(fresh.flatMap(([key, uid]) => (isSame(before?.get(key), uid) ? [] : [key])));
  }

  /** Why the pod's container was refused on the node that it is bound to, or undefined. */
  of(node: string, { uid, namespace, name }: RefusedPod): string | undefined {
    const refusal = this.#reported.get(node)?.get(`${namespace}/${name}`);
    return refusal === undefined || (refusal.podUID ?? uid) !== uid ? undefined : refusal.message;
  }

  /** Refuses pods with these needs on the node. */
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
