import { ParseError, quote } from './errors.ts';

/** Bounds the memory of `0-999999999`. The kernel's own limit (CONFIG_NR_CPUS) is 8,192 on the largest builds. */
export const MAX_CPUS = 65_536;

const WORD_BITS = 32;

/**
 * Words of 32 CPUs each, lowest ids first; the cost is linear in the text and the words.
 * @param list not empty, without white space around it; `whole`: the original text, for errors
 * @throws ParseError if the list is malformed or an id is not below the limit
 */
export function parseRanges(list: string, whole: string, limit: number): Uint32Array {
  const { bounds, highest } = scanRanges(list, whole, limit);
  const words = new Uint32Array((highest + WORD_BITS) >>> 5);
  for (let i = 0; i < bounds.length; i += 2) setRange(words, bounds[i]!, bounds[i + 1]!);
  return words;
}

const COMMA = 0x2c;
const DASH = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

/** In one pass over the text. @throws ParseError */
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
