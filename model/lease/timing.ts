import { PlumblineError } from '../errors.ts';

/** How often a DPU renews its lease and how long a renewal counts, in seconds. */
export interface LeaseTiming {
  /** 0: the feature is off. */
  readonly renewInterval: number;
  readonly duration: number;
}

/** Flags that contradict each other; the message names both. */
export class LeaseTimingError extends PlumblineError {
  constructor(message: string) {
    super('lease-timing', message);
  }
}

/**
 * Checks the two flags.
 * @throws LeaseTimingError if the interval is negative, the duration not positive, or no longer than the interval
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
  if (duration <= renewInterval) {
    throw new LeaseTimingError(
      `--dpu-node-lease-duration ${duration} must be greater than --dpu-node-lease-renew-interval ${renewInterval}: else a live DPU would count as dead between two renewals`,
    );
  }
}

/** Whether leases are in use at all. */
export function isLeaseEnabled({ renewInterval }: LeaseTiming): boolean {
  return renewInterval > 0;
}

/** Seconds between two looks at a lease: at least once in each renewal, and four times within its duration. */
export function observationPeriod({ renewInterval, duration }: LeaseTiming): number {
  return renewInterval > 0 ? Math.min(renewInterval, duration / 4) : duration / 4;
}
