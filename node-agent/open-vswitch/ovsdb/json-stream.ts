import { cut, PlumblineError } from '../../../model/errors.ts';

/** The stream is not JSON, or one of its values is larger than any value that this side requested. */
export class JsonStreamError extends PlumblineError {
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
 * keeps no chunk: one byte may come in a buffer of its own. @throws JsonStreamError; the stream is then unusable
 */
export function createJsonStream(largest = MAX_VALUE_BYTES): (chunk: Buffer) => unknown[] {
  /** The value so far is in its first `size` bytes. */
  let buffer: Buffer = Buffer.alloc(0);
  let size = 0;
  let depth = 0;
  let elements = 0;
  let inString = false;
  let escaped = false;

  const stepInString = (byte: number): void => {
    if (escaped) escaped = false;
    else if (byte === BACKSLASH) escaped = true;
    else if (byte === QUOTE) inString = false;
  };

  const countElement = (): void => {
    if (++elements > MAX_ELEMENTS) throw tooLarge(`${MAX_ELEMENTS} elements`);
  };

  const open = (): void => {
    countElement();
    if (++depth > MAX_DEPTH) throw new JsonStreamError(`${NOT_JSON}more than ${MAX_DEPTH} levels of brackets`);
  };

  /** Whether this byte ends a value. */
  const step = (byte: number): boolean => {
    if (inString) stepInString(byte);
    else if (OPENING.has(byte)) open();
    else if (depth === 0)
      throw new JsonStreamError(`${NOT_JSON}expected the beginning of an object, found byte ${byte}`);
    else if (byte === QUOTE) inString = true;
    else if (byte === COMMA) countElement();
    else if (CLOSING.has(byte)) return --depth === 0;
    return false;
  };

  const take = (part: Buffer) => {
    const needed = size + part.length;
    if (needed > largest) throw tooLarge(`${largest} bytes`);
    if (needed > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.min(largest, Math.max(needed, buffer.length * 2)));
      buffer.copy(larger, 0, 0, size);
      buffer = larger;
    }
    size += part.copy(buffer, size);
  };

  const finish = (): unknown => {
    const text = buffer.toString('utf8', 0, size);
    size = 0;
    elements = 0;
    if (buffer.length > MAX_IDLE_BUFFER_BYTES) buffer = Buffer.alloc(0);
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new JsonStreamError(NOT_JSON + cut((cause as Error).message, MAX_REASON_CHARACTERS), { cause });
    }
  };

  return (chunk) => {
    const values: unknown[] = [];
    let begin = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] as number;
      if (depth === 0 && BLANK.has(byte)) begin = i + 1;
      else if (step(byte)) {
        take(chunk.subarray(begin, i + 1));
        values.push(finish());
        begin = i + 1;
      }
    }
    if (begin < chunk.length) take(chunk.subarray(begin));
    return values;
  };
}
