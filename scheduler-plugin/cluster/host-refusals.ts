/**
 * Pods that a node's own agent refused to let start, by their needs. Until the node's next report the same needs would
 * come to the same end there.
 */
export class HostRefusals {
  /** By node name: the keys of the needs. */
  readonly #byNode = new Map<string, Set<string>>();

  add(node: string, key: string): void {
    const keys = this.#byNode.get(node);
    if (keys) keys.add(key);
    else this.#byNode.set(node, new Set([key]));
  }

  get any(): boolean {
    return this.#byNode.size > 0;
  }

  has(node: string, key: string): boolean {
    return this.#byNode.get(node)?.has(key) ?? false;
  }

  /** The node has reported anew. Returns whether anything was refused there. */
  reported(node: string): boolean {
    return this.#byNode.delete(node);
  }
}
