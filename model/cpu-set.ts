import { ParseError, quote } from './errors.ts';

/**
 * Highest CPU id that text may name, plus one. The kernel's own limit (CONFIG_NR_CPUS) is 8,192 on the largest builds;
 * the bound keeps `0-999999999` from costing memory before anybody has looked at it.
 */
export const MAX_CPUS = 65_536;

const WORD = 32;

/**
 * An immutable set of logical CPU ids.
 *
 * Held as 32-bit words, lowest ids first, without trailing zero words: so equal sets have equal words, and every
 * operation costs one pass over at most `MAX_CPUS / 32` words whatever the number of members.
 */
export class CpuSet implements Iterable<number> {
  static readonly EMPTY = new CpuSet(new Uint32Array(0));

  readonly #words: Uint32Array;

  private constructor(words: Uint32Array) {
    let length = words.length;
    while (length > 0 && words[length - 1] === 0) length--;
    this.#words = length === words.length ? words : words.slice(0, length);
  }

  /**
   * The set of the given CPU ids.
   * @throws RangeError if an id is no whole number in 0..65535
   */
  static of(ids: Iterable<number>): CpuSet {
    const list = Array.isArray(ids) ? (ids as readonly number[]) : [...ids];
    let highest = -1;
    for (const id of list) {
      if (!Number.isInteger(id) || id < 0 || id >= MAX_CPUS) {
        throw new RangeError(`CPU ${id}: a CPU id is a whole number from 0 to ${MAX_CPUS - 1}`);
      }
      if (id > highest) highest = id;
    }
    const words = new Uint32Array((highest + WORD) >>> 5);
    for (const id of list) words[id >>> 5]! |= 1 << (id & 31);
    return new CpuSet(words);
  }

  /** All ids from `first` to `last`, both included. An empty set when `last < first`. */
  static range(first: number, last: number): CpuSet {
    return CpuSet.of(Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i));
  }

  /**
   * Reads the kernel's list form, as in `/sys/devices/system/cpu/online` or `cpuset.cpus`: `0-3,8,10-11`. Empty text is
   * the empty set. White space around the whole is passed over (sysfs ends its lines).
   * @throws ParseError if the text is not of that form or names a CPU beyond 65535
   */
  static parse(text: string): CpuSet {
    const trimmed = text.trim();
    if (trimmed === '') return CpuSet.EMPTY;
    const ranges = trimmed.split(',').map((part) => parseRange(part, text));
    const highest = ranges.reduce((most, [, last]) => Math.max(most, last), 0);
    const words = new Uint32Array((highest + WORD) >>> 5);
    for (const [first, last] of ranges) setRange(words, first, last);
    return new CpuSet(words);
  }

  /**
   * Reads a hexadecimal mask: with or without `0x`, of any length, and in the kernel's form with a comma between each
   * 32 bits (`/proc/<pid>/status`: `ff,ffffffff`). Empty text is the empty set.
   * @throws ParseError if a character is no hexadecimal digit or the mask reaches beyond CPU 65535
   */
  static fromMask(text: string): CpuSet {
    const digits = text.trim().replace(/^0x/i, '');
    if (!/^(?:[0-9a-f]+(?:,[0-9a-f]{1,8})*)?$/i.test(digits)) {
      throw new ParseError('CPU mask', text, 'only hexadecimal digits are allowed, as in 0xc or ff,ffffffff');
    }
    // In the kernel's form each group between commas stands for exactly 32 bits, leading zeros or not.
    const [head = '', ...groups] = digits.split(',');
    const hex = (head + groups.map((group) => group.padStart(8, '0')).join('')).replace(/^0+/, '');
    if (hex.length * 4 > MAX_CPUS) throw new ParseError('CPU mask', text, `it reaches beyond CPU ${MAX_CPUS - 1}`);
    const words = new Uint32Array(Math.ceil(hex.length / 8));
    for (let i = 0; i < words.length; i++) {
      const end = hex.length - i * 8;
      words[i] = Number.parseInt(hex.slice(Math.max(0, end - 8), end), 16);
    }
    return new CpuSet(words);
  }

  /** The set over 32-bit words, lowest ids first (the layout of the kernel's cpu_set_t). The words are copied. */
  static fromWords(words: Uint32Array): CpuSet {
    return new CpuSet(words.slice());
  }

  /** A copy of the 32-bit words, lowest ids first, padded with zeros to at least `atLeast` words. */
  toWords(atLeast = 0): Uint32Array {
    const words = new Uint32Array(Math.max(atLeast, this.#words.length));
    words.set(this.#words);
    return words;
  }

  /** The number of CPUs in the set. */
  get size(): number {
    let count = 0;
    for (const word of this.#words) count += popCount(word);
    return count;
  }

  get isEmpty(): boolean {
    return this.#words.length === 0;
  }

  /** The lowest id, or undefined for the empty set. */
  get first(): number | undefined {
    for (const id of this) return id;
    return undefined;
  }

  has(id: number): boolean {
    // Beyond 32 bits, and between whole numbers, the shifts would find another id.
    return id >>> 0 === id && ((this.#words[id >>> 5] ?? 0) & (1 << (id & 31))) !== 0;
  }

  union(other: CpuSet): CpuSet {
    const [longer, shorter] =
      this.#words.length >= other.#words.length ? [this.#words, other.#words] : [other.#words, this.#words];
    const words = longer.slice();
    for (let i = 0; i < shorter.length; i++) words[i]! |= shorter[i]!;
    return new CpuSet(words);
  }

  intersect(other: CpuSet): CpuSet {
    const words = this.#words.slice(0, Math.min(this.#words.length, other.#words.length));
    for (let i = 0; i < words.length; i++) words[i]! &= other.#words[i]!;
    return new CpuSet(words);
  }

  /** The CPUs of this set that the other lacks. */
  minus(other: CpuSet): CpuSet {
    const words = this.#words.slice();
    const shared = Math.min(words.length, other.#words.length);
    for (let i = 0; i < shared; i++) words[i]! &= ~other.#words[i]!;
    return new CpuSet(words);
  }

  intersects(other: CpuSet): boolean {
    const shared = Math.min(this.#words.length, other.#words.length);
    for (let i = 0; i < shared; i++) if ((this.#words[i]! & other.#words[i]!) !== 0) return true;
    return false;
  }

  isSubsetOf(other: CpuSet): boolean {
    for (let i = 0; i < this.#words.length; i++) {
      if ((this.#words[i]! & ~(other.#words[i] ?? 0)) !== 0) return false;
    }
    return true;
  }

  equals(other: CpuSet): boolean {
    if (this.#words.length !== other.#words.length) return false;
    for (let i = 0; i < this.#words.length; i++) if (this.#words[i] !== other.#words[i]) return false;
    return true;
  }

  /** The ids in ascending order. */
  *[Symbol.iterator](): IterableIterator<number> {
    for (let i = 0; i < this.#words.length; i++) {
      for (let word = this.#words[i]!; word !== 0; word &= word - 1) {
        yield i * WORD + (31 - Math.clz32(word & -word));
      }
    }
  }

  toArray(): number[] {
    return [...this];
  }

  /** The kernel's list form, canonical: ascending, ranges joined. The empty set is ''. */
  toString(): string {
    const parts: string[] = [];
    let first = -1;
    let last = -1;
    const close = () => {
      if (first >= 0) parts.push(first === last ? `${first}` : `${first}-${last}`);
    };
    for (const id of this) {
      if (id !== last + 1 || first < 0) {
        close();
        first = id;
      }
      last = id;
    }
    close();
    return parts.join(',');
  }

  toJSON(): string {
    return this.toString();
  }

  /** `0x` and lower-case hexadecimal digits without leading zeros; the empty set is `0x0`. */
  toMask(): string {
    let hex = '';
    for (let i = this.#words.length - 1; i >= 0; i--) hex += this.#words[i]!.toString(16).padStart(8, '0');
    return `0x${hex.replace(/^0+(?=.)/, '') || '0'}`;
  }
}

/** The union of any number of sets. */
export function unionOf(sets: Iterable<CpuSet>): CpuSet {
  let all = CpuSet.EMPTY;
  for (const set of sets) all = all.union(set);
  return all;
}

function parseRange(part: string, whole: string): [number, number] {
  const match = /^([0-9]+)(?:-([0-9]+))?$/.exec(part);
  if (!match) throw new ParseError('CPU list', whole, 'expected numbers and ranges separated by commas, as in 0-3,8');
  const first = Number(match[1]);
  const last = match[2] === undefined ? first : Number(match[2]);
  if (last < first) throw new ParseError('CPU list', whole, `the range ${quote(part)} runs backwards`);
  if (last >= MAX_CPUS) throw new ParseError('CPU list', whole, `CPU ids end at ${MAX_CPUS - 1}`);
  return [first, last];
}

/** By words, not ids: text with many wide ranges costs no more than its length. */
function setRange(words: Uint32Array, first: number, last: number): void {
  const from = first >>> 5;
  const to = last >>> 5;
  const head = 0xffffffff << (first & 31);
  const tail = 0xffffffff >>> (31 - (last & 31));
  if (from === to) {
    words[from]! |= head & tail;
    return;
  }
  words[from]! |= head;
  words.fill(0xffffffff, from + 1, to);
  words[to]! |= tail;
}

function popCount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
