import type { RefusedStart } from '../../kube/node-topology.ts';
import type { PodView } from './pod-view.ts';

/** From that node's report only: the author of an image can forge a container's status. */
export class RefusedStartsByNode {
  /** By namespace/name. */
  readonly #reported = new Map<string, ReadonlyMap<string, RefusedStart>>();

  /** @returns the newly refused pods */
  reported(node: string, refusals: readonly RefusedStart[]): ReadonlySet<string> {
    const before = this.#reported.get(node);
    if (refusals.length === 0) this.#reported.delete(node);
    else
      this.#reported.set(
        node,
        new Map(refusals.map((refusal) => [`${refusal.namespace}/${refusal.podName}`, refusal])),
      );
    const keys = refusals.map((refusal) => ({ key: `${refusal.namespace}/${refusal.podName}`, uid: refusal.podUID }));
    const fresh = keys.filter(({ key, uid }) => !before?.has(key) || before.get(key)?.podUID !== uid);
    return new Set(fresh.map(({ key }) => key));
  }

  of(node: string, { uid, namespace, name }: Pick<PodView, 'uid' | 'namespace' | 'name'>): string | undefined {
    const refusal = this.#reported.get(node)?.get(`${namespace}/${name}`);
    return refusal === undefined || (refusal.podUID ?? uid) !== uid ? undefined : refusal.message;
  }
}
