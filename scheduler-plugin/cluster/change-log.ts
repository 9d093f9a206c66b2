/**
 * Which of many numbered things have changed lately, so that what was derived from them is updated and not derived again.
 */
export class ChangeLog {
  readonly #ids: Int32Array;
  #count = 0;

  /** @param kept how many changes are remembered */
  constructor(kept: number) {
    this.#ids = new Int32Array(kept);
  }

  /** Changes so far. */
  get count(): number {
    return this.#count;
  }

  add(id: number): void {
    this.#ids[this.#count++ % this.#ids.length] = id;
  }

  /** What has changed since there were so many changes; undefined if that is too long ago to tell. */
  since(count: number): Int32Array | undefined {
    const size = this.#ids.length;
    if (this.#count - count > size) return undefined;
    const [from, to] = [count % size, this.#count % size];
    if (from <= to && this.#count - count < size) return this.#ids.subarray(from, to);
    return Int32Array.of(...this.#ids.subarray(from), ...this.#ids.subarray(0, to));
  }
}
