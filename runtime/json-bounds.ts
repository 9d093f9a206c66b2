import { PlumblineError } from '../model/errors.ts';

type BodyStatus = 400 | 408 | 411 | 413 | 415 | 503;

/** A body that the server refuses; `status` is the HTTP status of the answer. */
export class BodyError extends PlumblineError {
  readonly status: BodyStatus;

  constructor(status: BodyStatus, message: string, options?: ErrorOptions) {
    super('request-body', message, options);
    this.status = status;
  }
}

/** Values and nesting; the largest objects that Kubernetes stores stay far below. */
const MAX_VALUES = 100_000;
const MAX_DEPTH = 500;
/** Fewer bytes of text for each value than any object of Kubernetes has; so the decoded body is a few times its text. */
const MIN_BYTES_OF_VALUE = 4;
/** Bytes that never decode to more than a few megabytes, whatever they contain. */
export const UNCHECKED_BYTES = 32 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Refuses very many values before decoding: an empty object needs thirty times its two bytes. @throws BodyError (413) */
export function assertBoundedJson(bytes: Uint8Array): void {
  if (bytes.length <= UNCHECKED_BYTES) return;
  const maxValues = Math.min(MAX_VALUES, Math.ceil(bytes.length / MIN_BYTES_OF_VALUE));
  let values = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) at = endOfString(bytes, at + 1);
    else if (byte === COMMA) values++;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      values++;
      if (++depth > MAX_DEPTH) throw new BodyError(413, `the body has more than ${MAX_DEPTH} levels of nesting`);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    if (values > maxValues) throw new BodyError(413, `the body has more than ${maxValues} values`);
  }
}

function endOfString(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
