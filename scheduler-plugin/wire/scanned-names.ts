import { ArgsError } from './args-error.ts';
import {
  FIRST_SEED,
  finishFirst,
  finishSecond,
  mixFirst,
  mixSecond,
  type NameIndex,
  SECOND_SEED,
} from './name-index.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const QUOTES = 0x22222222;
const OPEN = 0x5b;
const CLOSE = 0x5d;

/** Names in a body: for each, its node's number and the location of its text, without the quotes. */
export interface ScannedNames {
  /** At least three bytes follow each name. */
  readonly bytes: Uint8Array;
  readonly count: number;
  /** UNKNOWN for an unknown name. */
  readonly ids: Int32Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** Scans a JSON array of strings without building strings. The next scan reuses the arrays of the result. */
export class NameScanner {
  #ids = new Int32Array(1024);
  #starts = new Uint32Array(1024);
  #ends = new Uint32Array(1024);
  /** The end of the array: the first byte after `]`. */
  end = 0;

  /**
   * @param from position of the array's `[`
   * @throws ArgsError if it is not an array of strings
   */
  scan(bytes: Uint8Array, from: number, index: NameIndex): ScannedNames {
    if (bytes[from] !== OPEN) throw noStrings();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let count = 0;
    let at = skipSpace(bytes, from + 1);
    while (bytes[at] === QUOTE) {
      if (count === this.#ids.length) this.#grow();
      at = nextAfter(bytes, this.#name(view, at + 1, index, count++) + 1);
    }
    if (bytes[at] !== CLOSE) throw noStrings();
    this.end = at + 1;
    return { bytes, count, ids: this.#ids, starts: this.#starts, ends: this.#ends };
  }

  /**
   * Reads one string in a single pass: computes its fingerprint up to the closing quote, looks it up and returns the
   * position of the quote. A string with escapes is not a node's name: names consist of letters, digits, dots and
   * dashes.
   */
  #name(view: DataView, start: number, index: NameIndex, position: number): number {
    const last = view.byteLength - 4;
    let first = FIRST_SEED;
    let second = SECOND_SEED;
    let tail = 0;
    let at = start;
    for (; at <= last; at += 4) {
      const word = view.getInt32(at, true);
      // The lowest set bit is in the first byte that equals a quote.
      const apart = word ^ QUOTES;
      const quote = (apart - 0x01010101) & ~apart & 0x80808080;
      if (quote !== 0) {
        const bits = (31 - Math.clz32(quote & -quote)) & ~7;
        tail = word & ((1 << bits) - 1);
        at += bits >>> 3;
        break;
      }
      first = mixFirst(first, word);
      second = mixSecond(second, word);
    }
    // Fewer than four bytes remain only at the end of a body.
    for (let bits = 0; at < view.byteLength && view.getUint8(at) !== QUOTE; at++, bits += 8) {
      tail |= view.getUint8(at) << bits;
    }
    if (at >= view.byteLength) throw noStrings();
    if (at > start && view.getUint8(at - 1) === BACKSLASH) at = stringEnd(view, start);
    const length = at - start;
    this.#ids[position] = index.lookUp(finishFirst(first, tail, length), finishSecond(second, tail, length));
    this.#starts[position] = start;
    this.#ends[position] = at;
    return at;
  }

  #grow(): void {
    const size = this.#ids.length * 2;
    const [ids, starts, ends] = [new Int32Array(size), new Uint32Array(size), new Uint32Array(size)];
    ids.set(this.#ids);
    starts.set(this.#starts);
    ends.set(this.#ends);
    [this.#ids, this.#starts, this.#ends] = [ids, starts, ends];
  }
}

/** The text of one name. It builds a string, so use it only for the few names in an answer. */
export function nameAt({ bytes, starts, ends }: ScannedNames, position: number): string {
  const text = new TextDecoder().decode(bytes.subarray(starts[position], ends[position]));
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

/**
 * The position of a string's closing quote.
 * @throws ArgsError if there is none
 */
function stringEnd(view: DataView, start: number): number {
  for (let at = start; at < view.byteLength; at++) {
    const byte = view.getUint8(at);
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  throw noStrings();
}

/**
 * The end of the array after an item, or the position of the next item's quote.
 * @throws ArgsError if it is neither
 */
function nextAfter(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === COMMA ? from : skipSpace(bytes, from);
  if (bytes[at] === CLOSE) return at;
  if (bytes[at++] !== COMMA) throw noStrings();
  if (bytes[at] !== QUOTE) at = skipSpace(bytes, at);
  if (bytes[at] !== QUOTE) throw noStrings();
  return at;
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at++;
  }
}

function noStrings(): ArgsError {
  return new ArgsError('NodeNames is not an array of strings');
}
