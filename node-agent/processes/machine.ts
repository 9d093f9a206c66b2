import { readFileSync } from 'node:fs';
import { resultOrNone } from '../../model/json.ts';

/**
 * Seconds of CLOCK_MONOTONIC since the machine started. All processes share it, so one can continue another's
 * observation.
 */
export function machineSeconds(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1e6;
}

/** Distinguishes one boot of the machine from the next; empty if the kernel does not report an id. */
export function bootId(): string {
  return resultOrNone(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? '';
}
