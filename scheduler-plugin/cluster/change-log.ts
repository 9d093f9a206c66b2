/** A bounded log of changed ids, so that derived data can be updated instead of computed again. */
export class ChangeLog {
  readonly #ids: Int32Array;
  #count = 0;

  /** @param kept maximum number of remembered changes */
  constructor(kept: number) {
    this.#ids = new Int32Array(kept);
  }

  /** Number of changes so far. */
  get count(): number {
    return this.#count;
  }

  add(id: number): void {
    this.#ids[this.#count++ % this.#ids.length] = id;
  }

  /** The ids that changed since the log had `count` changes; undefined if the log no longer reaches back that far. */
  since(count: number): Int32Array | undefined {
    const size = this.#ids.length;
    if (this.#count - count > size) return undefined;
    const [from, to] = [count % size, this.#count % size];
    if (from <= to && this.#count - count < size) return this.#ids.subarray(from, to);
    return Int32Array.of(...this.#ids.subarray(from), ...this.#ids.subarray(0, to));
  }
}
