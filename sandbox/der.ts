/**
 * The part of DER (ITU-T X.690) that X.509 certificates need. Node.js can sign and read certificates but not create
 * them, and the sandbox must not require more than Node.js.
 */

const CONSTRUCTED = 0x20;
const CONTEXT = 0x80;

/** An element: tag, length, contents. */
function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length: number[] = [];
  for (let rest = body.length; rest > 0; rest = Math.floor(rest / 256)) length.unshift(rest % 256);
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length, ...length]), body]);
}

export const sequence = (...items: Uint8Array[]) => der(0x30, ...items);
export const set = (...items: Uint8Array[]) => der(0x31, ...items);
export const octets = (bytes: Uint8Array) => der(0x04, bytes);
export const utf8 = (text: string) => der(0x0c, Buffer.from(text, 'utf8'));
export const boolean = (value: boolean) => der(0x01, Buffer.from([value ? 0xff : 0]));
/** An unsigned integer from its bytes in network order. */
export const integer = (bytes: Uint8Array) => der(0x02, (bytes[0] ?? 0) > 0x7f ? Buffer.from([0]) : Buffer.of(), bytes);
/** A bit string without the last `unused` bits. */
export const bits = (bytes: Uint8Array, unused = 0) => der(0x03, Buffer.from([unused]), bytes);
/** [n] around other elements. */
export const explicit = (n: number, ...items: Uint8Array[]) => der(CONTEXT | CONSTRUCTED | n, ...items);
/** [n] instead of a primitive's own tag. */
export const implicit = (n: number, bytes: Uint8Array) => der(CONTEXT | n, bytes);

/** An object identifier from its dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime with a precision of one second, which RFC 5280 requires up to 2049. */
export function utcTime(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${text}Z`, 'ascii'));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}
