import type { RefusedStart } from '../../kube/node-topology.ts';

/** The fields of a pod that a refusal contains. */
export interface RefusedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Pods that a node's own agent refused to start, from that node's report only: the author of an image can forge a
 * container's status.
 */
export class RefusedStartsByNode {
  /** The refusals in each node's newest report, by namespace/name. */
  readonly #reported = new Map<string, ReadonlyMap<string, RefusedStart>>();

  /** Replaces the refusals of the node by those of a new report. @returns the newly refused pods */
  reported(node: string, refusals: readonly RefusedStart[]): ReadonlySet<string> {
    const before = this.#reported.get(node);
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
}

function isSame(before: RefusedStart | undefined, uid: string | undefined): boolean {
  return before !== undefined && before.podUID === uid;
}
