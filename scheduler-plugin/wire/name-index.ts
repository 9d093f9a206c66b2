/** The name is unknown. */
export const UNKNOWN = -1;

const REMOVED = -2;
const SMALLEST = 128;

/**
 * Node names with small stable numbers, looked up by a fingerprint of their bytes. It finds names in a request's body
 * in place, without building a string or reading the known name. Open addressing.
 *
 * The 64 bits of their fingerprints distinguish two names. Among 15,000 names, the odds that any two share one are 1 to
 * 10^11, and only administrators of the cluster choose the names of nodes.
 */
export class NameIndex {
  readonly #names: (string | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #ids = new Map<string, number>();
  /** Both halves of the name's fingerprint, by number. */
  #prints = new Int32Array(SMALLEST);
  #table = new Int32Array(SMALLEST).fill(UNKNOWN);
  /** Slots of the table that are not UNKNOWN. */
  #filled = 0;

  /** One more than the largest number in use. */
  get size(): number {
    return this.#names.length;
  }

  /** Number of names. */
  get count(): number {
    return this.#ids.size;
  }

  /** The number of a name, or UNKNOWN. */
  find(name: string): number {
    return this.#ids.get(name) ?? UNKNOWN;
  }

  nameOf(id: number): string | undefined {
    return this.#names[id];
  }

  /** The number of a name, which it keeps until it is removed. */
  add(name: string): number {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const id = this.#free.pop() ?? this.#names.length;
    this.#names[id] = name;
    this.#ids.set(name, id);
    if (id * 2 >= this.#prints.length) this.#prints = grown(this.#prints);
    this.#prints.set(printOf(name), id * 2);
    if ((this.#filled + 1) * 2 > this.#table.length) this.#rebuild();
    else this.#insert(id);
    return id;
  }

  /** Frees a name's number for another name. */
  remove(name: string): void {
    const id = this.#ids.get(name);
    if (id === undefined) return;
    this.#ids.delete(name);
    this.#names[id] = undefined;
    this.#free.push(id);
    this.#table[this.#table.indexOf(id)] = REMOVED;
  }

  /** The number of the name with a fingerprint (see `finish`), or UNKNOWN. */
  lookUp(first: number, second: number): number {
    const table = this.#table;
    const prints = this.#prints;
    const mask = table.length - 1;
    let slot = first & mask;
    let id = table[slot]!;
    while (id !== UNKNOWN && (id === REMOVED || prints[id * 2] !== first || prints[id * 2 + 1] !== second)) {
      slot = (slot + 1) & mask;
      id = table[slot]!;
    }
    return id;
  }

  #insert(id: number): void {
    const mask = this.#table.length - 1;
    let slot = this.#prints[id * 2]! & mask;
    while (this.#table[slot] !== UNKNOWN) slot = (slot + 1) & mask;
    this.#table[slot] = id;
    this.#filled++;
  }

  /** Makes room for as many names again, and drops the traces of removed ones. */
  #rebuild(): void {
    let slots = SMALLEST;
    while (slots < (this.#ids.size + 1) * 2) slots *= 2;
    this.#table = new Int32Array(slots).fill(UNKNOWN);
    this.#filled = 0;
    for (const id of this.#ids.values()) this.#insert(id);
  }
}

/** Factors and shifts that spread the bits of the halves of a fingerprint. */
const FIRST_FACTOR = 0x9e3779b1;
const FIRST_SHIFT = 15;
const SECOND_FACTOR = 0x2c1b3c6d;
const SECOND_SHIFT = 16;

/** Initial values of the halves of a fingerprint. */
export const FIRST_SEED = 0x2f0b4c47;
export const SECOND_SEED = 0x5bd1e995;

/**
 * Mixes four bytes, as a little-endian word, into the first half of a fingerprint. Every difference spreads to all
 * bits, since names of nodes differ in a few digits.
 */
export function mixFirst(hashed: number, word: number): number {
  const product = Math.imul(hashed ^ word, FIRST_FACTOR);
  return product ^ (product >>> FIRST_SHIFT);
}

/** The same for the second half, with different constants: names that collide in one half do not in the other. */
export function mixSecond(hashed: number, word: number): number {
  return (Math.imul(hashed, SECOND_FACTOR) + word) | 0;
}

/** Finishes the first half with the last zero to three bytes, as a zero-extended word, and the length in bytes. */
export function finishFirst(hashed: number, tail: number, length: number): number {
  return mixFirst(mixFirst(hashed, tail), length);
}

export function finishSecond(hashed: number, tail: number, length: number): number {
  const all = mixSecond(mixSecond(hashed, tail), length);
  return all ^ (all >>> SECOND_SHIFT);
}

function printOf(name: string): readonly [number, number] {
  const bytes = new TextEncoder().encode(name);
  const words = new DataView(new ArrayBuffer((bytes.length & ~3) + 4));
  new Uint8Array(words.buffer).set(bytes);
  let [first, second] = [FIRST_SEED, SECOND_SEED];
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    const word = words.getInt32(at, true);
    first = mixFirst(first, word);
    second = mixSecond(second, word);
  }
  const tail = words.getInt32(at, true);
  return [finishFirst(first, tail, bytes.length), finishSecond(second, tail, bytes.length)];
}

function grown(before: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const after = new Int32Array(before.length * 2);
  after.set(before);
  return after;
}
