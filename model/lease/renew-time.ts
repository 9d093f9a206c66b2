const MICRO_TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;
/** Characters of the longest time: `2026-01-01T00:00:00.000000000+00:00`. */
const LONGEST = 35;

/**
 * The renewTime to write: the current time, or one microsecond after the previous renewTime if the clock is not later.
 * Observers therefore see every renewal as a change, even if the clock was set back.
 * @param previous the current renewTime of the lease; ignored if it is not a time
 * @param nowMicros microseconds since 1970, UTC
 * @returns a Kubernetes MicroTime: RFC 3339 in UTC with six digits
 */
export function nextRenewTime(previous: string | null | undefined, nowMicros: bigint): string {
  const before = previous ? parseMicroTime(previous) : undefined;
  return formatMicroTime(before !== undefined && before >= nowMicros ? before + 1n : nowMicros);
}

/** Microseconds since 1970 of an RFC 3339 time; further digits are dropped. Undefined if the text is not a time. */
export function parseMicroTime(text: string): bigint | undefined {
  if (text.length > LONGEST) return undefined;
  const match = MICRO_TIME.exec(text);
  if (!match) return undefined;
  const [, seconds, fraction = '', zone] = match;
  const millis = Date.parse(`${seconds}${zone}`);
  if (Number.isNaN(millis)) return undefined;
  return BigInt(millis) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

/**
 * Formats microseconds since 1970 as a Kubernetes MicroTime.
 * @throws RangeError outside the years that a Date supports
 */
export function formatMicroTime(micros: bigint): string {
  const seconds = micros / 1_000_000n - (micros % 1_000_000n < 0n ? 1n : 0n);
  const rest = micros - seconds * 1_000_000n;
  const date = new Date(Number(seconds) * 1000).toISOString();
  return `${date.slice(0, -'.000Z'.length)}.${rest.toString().padStart(6, '0')}Z`;
}
