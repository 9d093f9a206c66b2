import { ParseError, quote } from './errors.ts';

/**
 * Highest CPU id in a text, plus one. The kernel's own limit (CONFIG_NR_CPUS) is 8,192 on the largest builds. Without
 * this limit `0-999999999` would use memory before it is checked.
 */
export const MAX_CPUS = 65_536;

const WORD = 32;
/** Number of ranges up to which each range is filled separately. */
const FEW_RANGES = 64;

/**
 * Parses a CPU list such as `0-3,8` into words of 32 CPUs each, lowest ids first. The cost is linear in the length of
 * the text and in the number of words.
 * @param list not empty, without white space around it
 * @param whole the original text, for errors
 * @param limit one more than the highest allowed id
 * @throws ParseError if the list is malformed or an id is not below the limit
 */
export function parseRanges(list: string, whole: string, limit: number): Uint32Array {
  const { bounds, highest } = scanRanges(list, whole, limit);
  const words = new Uint32Array((highest + WORD) >>> 5);
  if (bounds.length <= 2 * FEW_RANGES) {
    for (let i = 0; i < bounds.length; i += 2) setRange(words, bounds[i]!, bounds[i + 1]!);
  } else if (bounds.length < words.length) setSortedRanges(words, bounds);
  else setManyRanges(words, bounds, highest);
  return words;
}

const COMMA = 0x2c;
const DASH = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

/** First and last id of each range, in one pass over the text. @throws ParseError */
function scanRanges(list: string, whole: string, limit: number): { bounds: number[]; highest: number } {
  const bounds: number[] = [];
  let highest = 0;
  let at = 0;
  const readNumber = (): number => {
    const begin = at;
    let value = 0;
    for (let code = list.charCodeAt(at); code >= ZERO && code <= NINE; code = list.charCodeAt(++at)) {
      // Any larger number exceeds every limit, so its digits need not be exact.
      value = Math.min(value * 10 + code - ZERO, MAX_CPUS);
    }
    if (at === begin) throw malformed(whole);
    return value;
  };
  for (;;) {
    const begin = at;
    const first = readNumber();
    const hasLast = list.charCodeAt(at) === DASH;
    if (hasLast) at++;
    const last = hasLast ? readNumber() : first;
    if (last < first) {
      throw new ParseError('CPU list', whole, `the range ${quote(list.slice(begin, at))} runs backwards`);
    }
    if (last >= limit) throw new ParseError('CPU list', whole, `CPU ids end at ${limit - 1}`);
    if (last > highest) highest = last;
    bounds.push(first, last);
    if (at === list.length) return { bounds, highest };
    if (list.charCodeAt(at++) !== COMMA) throw malformed(whole);
  }
}

function malformed(whole: string): ParseError {
  return new ParseError('CPU list', whole, 'expected numbers and ranges separated by commas, as in 0-3,8');
}

/** Fills ranges in ascending order, so that overlaps never fill a word twice. */
function setSortedRanges(words: Uint32Array, bounds: readonly number[]): void {
  const ranges = new Float64Array(bounds.length / 2);
  for (let i = 0; i < ranges.length; i++) ranges[i] = bounds[2 * i]! * MAX_CPUS + bounds[2 * i + 1]!;
  let next = 0;
  for (const range of ranges.sort()) {
    const last = range % MAX_CPUS;
    if (last < next) continue;
    setRange(words, Math.max(Math.floor(range / MAX_CPUS), next), last);
    next = last + 1;
  }
}

/** Fills many ranges. The cost depends on their number and on the highest id, not on overlaps. */
function setManyRanges(words: Uint32Array, bounds: readonly number[], highest: number): void {
  const changes = new Int32Array(highest + 2);
  for (let i = 0; i < bounds.length; i += 2) {
    changes[bounds[i]!]!++;
    changes[bounds[i + 1]! + 1]!--;
  }
  let depth = 0;
  for (let id = 0; id <= highest; id++) {
    depth += changes[id]!;
    if (depth > 0) words[id >>> 5]! |= 1 << (id & 31);
  }
}

/** Fills whole words: the cost of many wide ranges stays linear in the length of the text. */
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
