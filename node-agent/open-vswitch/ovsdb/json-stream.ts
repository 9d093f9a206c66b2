import { cut, PlumblineError } from '../../../model/errors.ts';

/** The stream is not JSON, or one of its values is larger than any value that this side requested. */
class JsonStreamError extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('ovsdb-protocol', why, options);
  }
}

const NOT_JSON = 'the stream is not JSON-RPC: ';
const tooLarge = (most: string): JsonStreamError =>
  new JsonStreamError(`Open vSwitch has too many ports: one value is larger than ${most}; networks are not located`);

/** Bytes; the ports and uplinks of a node with 20,000 tunnels are 3.4 MB. */
const MAX_VALUE_BYTES = 4 * 1024 * 1024;
/** Maximum elements of a value: each costs up to 100 bytes of heap; 20,000 tunnels are 180,000. */
const MAX_ELEMENTS = 256 * 1024;
/** Maximum depth of brackets; OVSDB messages have eight levels. Code that walks through a value later may recurse. */
const MAX_DEPTH = 64;
/** Size of the buffer that is kept for the next value; a larger one is freed. */
const MAX_IDLE_BUFFER_BYTES = 64 * 1024;

const MAX_REASON_CHARACTERS = 120;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING = new Set([0x7b, 0x5b]);
const CLOSING = new Set([0x7d, 0x5d]);
const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Splits a stream of JSON values without separators, as OVSDB frames them (RFC 7047, 4). It copies each byte once and
 * keeps no chunk: one byte may come in a buffer of its own.
 */
export class JsonStream {
  readonly #maxValueBytes: number;
  /** The value so far is in its first `#size` bytes. */
  #buffer: Buffer = Buffer.alloc(0);
  #size = 0;
  #depth = 0;
  #elements = 0;
  /** `escaped`: in a string, after a backslash. */
  #mode: 'outside' | 'string' | 'escaped' = 'outside';

  constructor(maxValueBytes = MAX_VALUE_BYTES) {
    this.#maxValueBytes = maxValueBytes;
  }

  /** @returns the values that this chunk completes @throws JsonStreamError; the stream is then unusable */
  read(chunk: Buffer): unknown[] {
    const values: unknown[] = [];
    let begin = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] as number;
      if (this.#depth === 0 && BLANK.has(byte)) begin = i + 1;
      else if (this.#step(byte)) {
        this.#append(chunk.subarray(begin, i + 1));
        values.push(this.#finish());
        begin = i + 1;
      }
    }
    if (begin < chunk.length) this.#append(chunk.subarray(begin));
    return values;
  }

  /** Whether this byte ends a value. */
  #step(byte: number): boolean {
    if (this.#mode === 'escaped') this.#mode = 'string';
    else if (this.#mode === 'string') {
      if (byte === BACKSLASH) this.#mode = 'escaped';
      else if (byte === QUOTE) this.#mode = 'outside';
    } else if (OPENING.has(byte)) {
      this.#countElement();
      if (++this.#depth > MAX_DEPTH) throw new JsonStreamError(`${NOT_JSON}more than ${MAX_DEPTH} levels of brackets`);
    } else if (this.#depth === 0)
      throw new JsonStreamError(`${NOT_JSON}expected the beginning of an object, found byte ${byte}`);
    else if (byte === QUOTE) this.#mode = 'string';
    else if (byte === COMMA) this.#countElement();
    else if (CLOSING.has(byte)) return --this.#depth === 0;
    return false;
  }

  #countElement(): void {
    if (++this.#elements > MAX_ELEMENTS) throw tooLarge(`${MAX_ELEMENTS} elements`);
  }

  #append(part: Buffer): void {
    const needed = this.#size + part.length;
    if (needed > this.#maxValueBytes) throw tooLarge(`${this.#maxValueBytes} bytes`);
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.min(this.#maxValueBytes, Math.max(needed, this.#buffer.length * 2)));
      this.#buffer.copy(larger, 0, 0, this.#size);
      this.#buffer = larger;
    }
    this.#size += part.copy(this.#buffer, this.#size);
  }

  #finish(): unknown {
    const text = this.#buffer.toString('utf8', 0, this.#size);
    this.#size = 0;
    this.#elements = 0;
    if (this.#buffer.length > MAX_IDLE_BUFFER_BYTES) this.#buffer = Buffer.alloc(0);
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new JsonStreamError(NOT_JSON + cut((cause as Error).message, MAX_REASON_CHARACTERS), { cause });
    }
  }
}
