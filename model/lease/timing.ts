/** In seconds. */
export interface LeaseTiming {
  /** 0 disables the feature. */
  readonly renewInterval: number;
  readonly duration: number;
}

/** The default of --dpu-node-lease-duration. */
export const DEFAULT_LEASE_SECONDS = 40;
/** Above the upper one, a dead DPU would count as alive for too long, and a timer would overflow. */
export const MIN_LEASE_SECONDS = 1;
export const MAX_LEASE_SECONDS = 600;

/** Within the limits, whatever the object has. @param value the default applies if it is not a number */
export function leaseSeconds(value: number | null | undefined): number {
  if (typeof value !== 'number' || Number.isNaN(value)) return DEFAULT_LEASE_SECONDS;
  return Math.min(MAX_LEASE_SECONDS, Math.max(MIN_LEASE_SECONDS, value));
}

/** The fault of the settings: the duration is out of its limits or not above the interval. Undefined if there is none. */
export function leaseTimingFault({ renewInterval, duration }: LeaseTiming): string | undefined {
  if (!Number.isFinite(renewInterval) || renewInterval < 0)
    return `--dpu-node-lease-renew-interval ${renewInterval}: expected 0 (off) or a number of seconds`;
  const flag = `--dpu-node-lease-duration ${duration}`;
  if (!Number.isFinite(duration) || duration <= 0) return `${flag}: expected a number of seconds above 0`;
  if (duration > MAX_LEASE_SECONDS)
    return `${flag}: expected at most ${MAX_LEASE_SECONDS}, which is all that a lease counts`;
  if (duration > renewInterval) return undefined;
  return `${flag} must be greater than --dpu-node-lease-renew-interval ${renewInterval}: else a live DPU would count as dead between two renewals`;
}

/** Seconds between two readings of a lease: at least one for each renewal interval and four for each duration. */
export function observationPeriod({ renewInterval, duration }: LeaseTiming): number {
  return renewInterval > 0 ? Math.min(renewInterval, duration / 4) : duration / 4;
}

const MICRO_TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;
/** `2026-01-01T00:00:00.000000000+00:00`. */
const MAX_CHARACTERS = 35;

/**
 * The current time, or a microsecond after `previous` if the clock is not later: every renewal is a change.
 * @param nowMicros microseconds since 1970, UTC @returns a Kubernetes MicroTime: RFC 3339 in UTC with six digits
 */
export function nextRenewTime(previous: string | null | undefined, nowMicros: bigint): string {
  const before = previous ? parseMicroTime(previous) : undefined;
  return formatMicroTime(before !== undefined && before >= nowMicros ? before + 1n : nowMicros);
}

/** Microseconds since 1970 of an RFC 3339 time; further digits are dropped. Undefined if the text is not a time. */
export function parseMicroTime(text: string): bigint | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const match = MICRO_TIME.exec(text);
  if (!match) return undefined;
  const [, seconds, fraction = '', zone] = match;
  const millis = Date.parse(`${seconds}${zone}`);
  if (Number.isNaN(millis)) return undefined;
  return BigInt(millis) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

/** A Kubernetes Time, in whole seconds, from milliseconds since 1970. @throws RangeError as `formatMicroTime` */
export const formatTime = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;

/** A Kubernetes MicroTime, from microseconds since 1970. @throws RangeError outside the years that a Date supports */
export function formatMicroTime(micros: bigint): string {
  const seconds = micros / 1_000_000n - (micros % 1_000_000n < 0n ? 1n : 0n);
  const rest = micros - seconds * 1_000_000n;
  const date = new Date(Number(seconds) * 1000).toISOString();
  return `${date.slice(0, -'.000Z'.length)}.${rest.toString().padStart(6, '0')}Z`;
}
