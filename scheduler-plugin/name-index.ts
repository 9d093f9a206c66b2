/** The name is not known. */
export const UNKNOWN = -1;

const EMPTY = -1;
const REMOVED = -2;

/**
 * Node names as bytes, each with a small stable number, so that names are looked up in a request's body as they stand
 * there: no string is built of them. Open addressing over a hash of the bytes; a hit is always compared in full.
 */
export class NameIndex {
  readonly #names: (string | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #ids = new Map<string, number>();
  #start = new Uint32Array(64);
  #length = new Uint16Array(64);
  #arena = new Uint8Array(4096);
  #view = new DataView(this.#arena.buffer);
  #used = 0;
  #table = new Int32Array(128).fill(EMPTY);
  /** Slots of the table that are not EMPTY. */
  #filled = 0;

  /** One more than the largest number given out. */
  get size(): number {
    return this.#names.length;
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
    const bytes = new TextEncoder().encode(name);
    const id = this.#free.pop() ?? this.#names.length;
    this.#names[id] = name;
    this.#ids.set(name, id);
    this.#store(id, bytes);
    if ((this.#filled + 1) * 2 > this.#table.length) this.#rebuild();
    else this.#insert(id);
    return id;
  }

  /** Gives a name's number free for another. */
  remove(name: string): void {
    const id = this.#ids.get(name);
    if (id === undefined) return;
    this.#ids.delete(name);
    this.#names[id] = undefined;
    this.#free.push(id);
    this.#table[this.#table.indexOf(id)] = REMOVED;
  }

  /**
   * The number of the name that stands in a body, or UNKNOWN.
   * @param hashed what `mix` and `finish` make of its bytes
   */
  lookup(view: DataView, start: number, length: number, hashed: number): number {
    const table = this.#table;
    const mask = table.length - 1;
    for (let slot = hashed & mask; ; slot = (slot + 1) & mask) {
      const id = table[slot]!;
      if (id === EMPTY) return UNKNOWN;
      if (id >= 0 && this.#length[id] === length && this.#equals(id, view, start, length)) return id;
    }
  }

  #equals(id: number, view: DataView, start: number, length: number): boolean {
    const own = this.#view;
    let mine = this.#start[id]!;
    let theirs = start;
    const end = start + length;
    for (; theirs + 4 <= end; theirs += 4, mine += 4) {
      if (own.getUint32(mine, true) !== view.getUint32(theirs, true)) return false;
    }
    for (; theirs < end; theirs++, mine++) if (own.getUint8(mine) !== view.getUint8(theirs)) return false;
    return true;
  }

  #store(id: number, bytes: Uint8Array): void {
    if (id >= this.#start.length) {
      this.#start = grown(this.#start, new Uint32Array(id * 2));
      this.#length = grown(this.#length, new Uint16Array(id * 2));
    }
    if (this.#used + bytes.length > this.#arena.length) this.#makeRoom(bytes.length);
    this.#arena.set(bytes, this.#used);
    this.#start[id] = this.#used;
    this.#length[id] = bytes.length;
    this.#used += bytes.length;
  }

  /** Leaves behind the bytes of names that are gone, and doubles what is left if need be. */
  #makeRoom(bytes: number): void {
    const before = this.#arena;
    const living = [...this.#ids.values()].filter((id) => id < this.#start.length && this.#length[id]! > 0);
    const needed = living.reduce((sum, id) => sum + this.#length[id]!, bytes);
    this.#arena = new Uint8Array(Math.max(4096, needed * 2));
    this.#view = new DataView(this.#arena.buffer);
    this.#used = 0;
    for (const id of living) {
      const from = this.#start[id]!;
      this.#arena.set(before.subarray(from, from + this.#length[id]!), this.#used);
      this.#start[id] = this.#used;
      this.#used += this.#length[id]!;
    }
  }

  #insert(id: number): void {
    const mask = this.#table.length - 1;
    const from = this.#start[id]!;
    let slot = hash(this.#view, from, from + this.#length[id]!) & mask;
    while (this.#table[slot] !== EMPTY) slot = (slot + 1) & mask;
    this.#table[slot] = id;
    this.#filled++;
  }

  #rebuild(): void {
    let slots = 128;
    while (slots < this.#ids.size * 4) slots *= 2;
    this.#table = new Int32Array(slots).fill(EMPTY);
    this.#filled = 0;
    for (const id of this.#ids.values()) this.#insert(id);
  }
}

/** Takes four bytes into a hash: names of nodes often differ in their middle, so all of them count. */
export function mix(hashed: number, word: number): number {
  const product = Math.imul(hashed ^ word, 0x9e3779b1);
  return product ^ (product >>> 15);
}

/** Takes one byte of a name's end into a hash. */
export function mixByte(hashed: number, byte: number): number {
  return Math.imul(hashed ^ byte, 0x01000193);
}

export function finish(hashed: number, length: number): number {
  const all = hashed ^ length;
  return (all ^ (all >>> 13)) >>> 0;
}

/** What a hash begins with. */
export const SEED = 0x2f0b4c47;

function hash(view: DataView, start: number, end: number): number {
  let hashed = SEED;
  let at = start;
  for (; at + 4 <= end; at += 4) hashed = mix(hashed, view.getUint32(at, true));
  for (; at < end; at++) hashed = mixByte(hashed, view.getUint8(at));
  return finish(hashed, end - start);
}

function grown<T extends Uint32Array | Uint16Array>(before: T, after: T): T {
  after.set(before);
  return after;
}
