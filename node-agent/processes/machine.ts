import { readFileSync } from 'node:fs';

/**
 * Seconds since the machine was started, by CLOCK_MONOTONIC: the same for all its processes, so that one can continue
 * from another's observation.
 */
export function machineSeconds(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1e6;
}

/** Tells one run of the machine from the next; empty where the kernel does not say. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
