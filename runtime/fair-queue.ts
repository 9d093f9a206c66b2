/** Values by namespace and key. Namespaces take turns: thousands of values delay another's by one turn. */
export class FairQueue<V> {
  /** Namespaces in the order of their turns; the values of each in the order of their addition. */
  readonly #namespaces = new Map<string, Map<string, V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A value that replaces another keeps its position. */
  set(namespace: string, key: string, value: V): void {
    const values = this.#namespaces.get(namespace) ?? new Map<string, V>();
    this.#namespaces.set(namespace, values);
    if (!values.has(key)) this.#size++;
    values.set(key, value);
  }

  delete(namespace: string, key: string): void {
    const values = this.#namespaces.get(namespace);
    if (!values?.delete(key)) return;
    this.#size--;
    if (values.size === 0) this.#namespaces.delete(namespace);
  }

  /** The turn of its namespace is then over. @param isReady a value for which it is false stays */
  take(isReady: (value: V) => boolean = () => true): V | undefined {
    for (const [namespace, values] of this.#namespaces) {
      for (const [key, value] of values) {
        if (!isReady(value)) continue;
        this.delete(namespace, key);
        if (this.#namespaces.delete(namespace)) this.#namespaces.set(namespace, values);
        return value;
      }
    }
    return undefined;
  }

  /** In the order in which they would be taken. */
  *values(): Generator<V> {
    let turns = [...this.#namespaces.values()].map((values) => values.values());
    while (turns.length > 0) {
      const remaining: typeof turns = [];
      for (const turn of turns) {
        const { done, value } = turn.next();
        if (done === true) continue;
        yield value;
        remaining.push(turn);
      }
      turns = remaining;
    }
  }

  /** The oldest value of the namespace that has the most. */
  oldestOfLargest(): V | undefined {
    let largest: ReadonlyMap<string, V> = new Map();
    for (const values of this.#namespaces.values()) if (values.size > largest.size) largest = values;
    return largest.values().next().value;
  }

  clear(): void {
    this.#namespaces.clear();
    this.#size = 0;
  }
}
