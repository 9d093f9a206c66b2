import { ParseError, quote } from './errors.ts';

/** Bounds the memory of `0-999999999`. The kernel's own limit (CONFIG_NR_CPUS) is 8,192 on the largest builds. */
export const MAX_CPUS = 65_536;

/** Characters of the longest list: every second CPU of all CPUs, with some reserve. */
const MAX_LIST_CHARACTERS = 524_288;

const WORD_BITS = 32;
const FULL = 0xffffffff;
const BRIEF_RANGES = 12;

/** An immutable set of logical CPU ids: 32-bit words, lowest ids first, without trailing zero words. */
export class CpuSet implements Iterable<number> {
  static readonly EMPTY = new CpuSet(new Uint32Array(0));

  readonly #words: Uint32Array;

  private constructor(words: Uint32Array) {
    let length = words.length;
    while (length > 0 && words[length - 1] === 0) length--;
    this.#words = length === words.length ? words : words.slice(0, length);
  }

  /** @throws RangeError if an id is not a whole number in 0..65535 */
  static of(ids: Iterable<number>): CpuSet {
    const list = Array.isArray(ids) ? (ids as readonly number[]) : [...ids];
    let highest = -1;
    for (const id of list) {
      if (!Number.isInteger(id) || id < 0 || id >= MAX_CPUS) {
        throw new RangeError(`CPU ${id}: a CPU id is a whole number from 0 to ${MAX_CPUS - 1}`);
      }
      if (id > highest) highest = id;
    }
    const words = new Uint32Array((highest + WORD_BITS) >>> 5);
    for (const id of list) words[id >>> 5]! |= 1 << (id & 31);
    return new CpuSet(words);
  }

  /** All ids from `first` to `last`, inclusive; empty if `last < first`. */
  static range(first: number, last: number): CpuSet {
    return CpuSet.of(Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i));
  }

  /**
   * Parses the kernel's list format: `0-3,8,10-11`. Empty text is the empty set; white space around it is ignored.
   * @param limit one more than the highest allowed id @throws ParseError if malformed, too long or beyond the limit
   */
  static parse(text: string, limit = MAX_CPUS): CpuSet {
    if (text.length > MAX_LIST_CHARACTERS) {
      throw new ParseError('CPU list', text, `it is longer than ${MAX_LIST_CHARACTERS} characters`);
    }
    const trimmed = text.trim();
    if (trimmed === '') return CpuSet.EMPTY;
    const ranges = trimmed.split(',').map((part) => parseRange(part, text, limit));
    const highest = ranges.reduce((most, [, last]) => Math.max(most, last), 0);
    const words = new Uint32Array((highest + WORD_BITS) >>> 5);
    for (const [first, last] of ranges) setRange(words, first, last);
    return new CpuSet(words);
  }

  /** In one pass over their words. */
  static union(sets: Iterable<CpuSet>): CpuSet {
    const all = [...sets];
    const words = new Uint32Array(all.reduce((most, set) => Math.max(most, set.#words.length), 0));
    for (const set of all) for (let i = 0; i < set.#words.length; i++) words[i]! |= set.#words[i]!;
    return new CpuSet(words);
  }

  /**
   * Parses a hexadecimal mask, with or without `0x`, also with commas (`/proc/<pid>/status`: `ff,ffffffff`).
   * @throws ParseError if a character is not a hexadecimal digit or the mask exceeds CPU 65535
   */
  static fromMask(text: string): CpuSet {
    if (text.length > MAX_LIST_CHARACTERS) {
      throw new ParseError('CPU mask', text, `it is longer than ${MAX_LIST_CHARACTERS} characters`);
    }
    const digits = text.trim().replace(/^0x/i, '');
    if (!/^(?:[0-9a-f]+(?:,[0-9a-f]{1,8})*)?$/i.test(digits)) {
      throw new ParseError('CPU mask', text, 'only hexadecimal digits are allowed, as in 0xc or ff,ffffffff');
    }
    // In the kernel's format each group between commas has exactly 32 bits, with or without leading zeros.
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

  /** Of the layout of the kernel's cpu_set_t. The words are copied. */
  static fromWords(words: Uint32Array): CpuSet {
    return new CpuSet(words.slice());
  }

  /** A copy of the 32-bit words, lowest ids first, padded with zeros to at least `atLeast` words. */
  toWords(atLeast = 0): Uint32Array {
    const words = new Uint32Array(Math.max(atLeast, this.#words.length));
    words.set(this.#words);
    return words;
  }

  get size(): number {
    let count = 0;
    for (const word of this.#words) count += popCount(word);
    return count;
  }

  /** Number of ids up to the highest, in steps of 32: the memory of the set, in bits. */
  get span(): number {
    return this.#words.length * WORD_BITS;
  }

  get isEmpty(): boolean {
    return this.#words.length === 0;
  }

  /** The lowest id, or undefined for the empty set. */
  get first(): number | undefined {
    return this.#words.length === 0 ? undefined : nextBit(this.#words, 0, this.span, 0);
  }

  has(id: number): boolean {
    // Beyond 32 bits, and for fractions, the shifts would find another id.
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

  *[Symbol.iterator](): IterableIterator<number> {
    for (let i = 0; i < this.#words.length; i++) {
      for (let word = this.#words[i]!; word !== 0; word &= word - 1) {
        yield i * WORD_BITS + (31 - Math.clz32(word & -word));
      }
    }
  }

  toArray(): number[] {
    return [...this];
  }

  /** The kernel's list format: ascending, ranges joined; '' if empty. The cost is linear in words and ranges. */
  toString(): string {
    return this.#format(Number.POSITIVE_INFINITY);
  }

  /** For a message, whose length must not grow with the set: the first ranges and the number of CPUs. */
  get brief(): string {
    if (this.isEmpty) return 'none';
    const ranges = this.#format(BRIEF_RANGES + 1);
    const cut = ranges.split(',', BRIEF_RANGES + 1);
    return cut.length <= BRIEF_RANGES ? ranges : `${cut.slice(0, BRIEF_RANGES).join(',')},… (${this.size} CPUs)`;
  }

  #format(most: number): string {
    const parts: string[] = [];
    const [words, end] = [this.#words, this.span];
    let at = nextBit(words, 0, end, 0);
    while (at < end && parts.length < most) {
      const after = nextBit(words, at, end, FULL);
      parts.push(after === at + 1 ? `${at}` : `${at}-${after - 1}`);
      at = nextBit(words, after, end, 0);
    }
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

export const unionOf = CpuSet.union;

/** @param whole the list, for errors @throws ParseError */
function parseRange(part: string, whole: string, limit: number): [first: number, last: number] {
  const [, begin, end] = /^([0-9]+)(?:-([0-9]+))?$/.exec(part) ?? [];
  if (begin === undefined) {
    throw new ParseError('CPU list', whole, 'expected numbers and ranges separated by commas, as in 0-3,8');
  }
  const [first, last] = [Number(begin), Number(end ?? begin)];
  if (last < first) throw new ParseError('CPU list', whole, `the range ${quote(part)} runs backwards`);
  if (last >= limit) throw new ParseError('CPU list', whole, `CPU ids end at ${limit - 1}`);
  return [first, last];
}

/** Fills whole words: the cost of many wide ranges stays linear in the length of the text. */
function setRange(words: Uint32Array, first: number, last: number): void {
  const [from, to] = [first >>> 5, last >>> 5];
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

/** The first id at or after `from` whose bit differs from `same`: 0 finds a member, FULL an id that is none. */
function nextBit(words: Uint32Array, from: number, end: number, same: 0 | typeof FULL): number {
  if (from >= end) return end;
  let at = from >>> 5;
  let differs = ((words[at]! ^ same) & (0xffffffff << (from & 31))) >>> 0;
  while (differs === 0) {
    if (++at === words.length) return end;
    differs = (words[at]! ^ same) >>> 0;
  }
  return at * WORD_BITS + (31 - Math.clz32(differs & -differs));
}

function popCount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
