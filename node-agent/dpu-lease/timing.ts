import * as z from 'zod';

/**
 * How often a DPU says that it is alive and for how long that counts, in seconds; an interval of 0 turns the check off.
 */
export interface DpuLeaseTiming {
  readonly interval: number;
  readonly duration: number;
}

export const renewInterval = z.coerce.number().int('expected whole seconds').min(0, 'expected 0 (off) or more seconds');
export const leaseDuration = z.coerce.number().int('expected whole seconds').min(1, 'expected at least one second');

/** What is wrong between the two, or undefined: a lease that ends before its next renewal would always flap. */
export function checkTiming({ interval, duration }: DpuLeaseTiming): string | undefined {
  if (duration > interval) return undefined;
  return `--dpu-node-lease-duration ${duration} must be greater than --dpu-node-lease-renew-interval ${interval}`;
}
