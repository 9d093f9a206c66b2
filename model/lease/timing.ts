import { PlumblineError } from '../errors.ts';

/** How often a DPU renews its lease and how long a renewal counts, in seconds. */
export interface LeaseTiming {
  /** 0 disables the feature. */
  readonly renewInterval: number;
  readonly duration: number;
}

/** Default duration of a renewal in seconds, for a Lease without one; the default of --dpu-node-lease-duration. */
export const DEFAULT_LEASE_SECONDS = 40;
/**
 * Limits of the duration in a Lease, in seconds. Above the upper one, a dead DPU would count as alive for too long, and
 * a timer would overflow.
 */
export const LEAST_LEASE_SECONDS = 1;
export const MOST_LEASE_SECONDS = 600;

/**
 * Seconds that one renewal of a Lease counts, within the limits whatever leaseDurationSeconds contains.
 * @param value from the object; the default applies if it is not a number
 */
export function leaseSeconds(value: number | null | undefined): number {
  if (typeof value !== 'number' || Number.isNaN(value)) return DEFAULT_LEASE_SECONDS;
  return Math.min(MOST_LEASE_SECONDS, Math.max(LEAST_LEASE_SECONDS, value));
}

/** Flags that contradict each other; the message names both. */
export class LeaseTimingError extends PlumblineError {
  constructor(message: string) {
    super('lease-timing', message);
  }
}

/**
 * Checks the two flags.
 * @throws LeaseTimingError if the interval is negative, or if the duration is not positive, above the limit, or not
 * longer than the interval
 */
export function checkLeaseTiming({ renewInterval, duration }: LeaseTiming): void {
  if (!Number.isFinite(renewInterval) || renewInterval < 0) {
    throw new LeaseTimingError(
      `--dpu-node-lease-renew-interval ${renewInterval}: expected 0 (off) or a number of seconds`,
    );
  }
  if (!Number.isFinite(duration) || duration <= 0) {
    throw new LeaseTimingError(`--dpu-node-lease-duration ${duration}: expected a number of seconds above 0`);
  }
  if (duration > MOST_LEASE_SECONDS) {
    throw new LeaseTimingError(
      `--dpu-node-lease-duration ${duration}: expected at most ${MOST_LEASE_SECONDS}, which is all that a lease counts`,
    );
  }
  if (duration <= renewInterval) {
    throw new LeaseTimingError(
      `--dpu-node-lease-duration ${duration} must be greater than --dpu-node-lease-renew-interval ${renewInterval}: else a live DPU would count as dead between two renewals`,
    );
  }
}

/** Whether leases are enabled. */
export function isLeaseEnabled({ renewInterval }: LeaseTiming): boolean {
  return renewInterval > 0;
}

/** Seconds between two readings of a lease: at least one for each renewal interval and four for each duration. */
export function observationPeriod({ renewInterval, duration }: LeaseTiming): number {
  return renewInterval > 0 ? Math.min(renewInterval, duration / 4) : duration / 4;
}
