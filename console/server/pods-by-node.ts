import type { ShownPod } from './pods.ts';

/** Pods by the node that they are on or in flight to; nodes without pods have no entry. */
export class PodsByNode {
  readonly #nodes = new Map<string, Map<string, ShownPod>>();

  put(node: string, pod: ShownPod): void {
    const there = this.#nodes.get(node) ?? new Map<string, ShownPod>();
    this.#nodes.set(node, there.set(pod.uid, pod));
  }

  delete(node: string, uid: string): void {
    const there = this.#nodes.get(node);
    there?.delete(uid);
    if (there?.size === 0) this.#nodes.delete(node);
  }

  on(node: string): Iterable<ShownPod> {
    return this.#nodes.get(node)?.values() ?? [];
  }
}
