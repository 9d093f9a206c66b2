/** A map that drops its oldest entry when it is full. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #maxEntries: number;

  constructor(maxEntries: number) {
    super();
    this.#maxEntries = maxEntries;
  }

  override set(key: K, value: V): this {
    for (const oldest of this.keys()) {
      if (this.size < this.#maxEntries || this.has(key)) break;
      this.delete(oldest);
    }
    return super.set(key, value);
  }

  /** The value of the key, which is created if it is missing. */
  getOrCreate(key: K, create: () => V): V {
    const present = this.get(key);
    if (present !== undefined) return present;
    const created = create();
    this.set(key, created);
    return created;
  }
}
