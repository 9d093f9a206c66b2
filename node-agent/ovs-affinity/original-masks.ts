import type { CpuSet } from '../../model/cpu-set.ts';

/** The original mask of a thread whose mask differed from its main thread's. */
interface OddThread {
  readonly tid: number;
  /** Clock ticks since the machine's start. */
  readonly start: number;
  readonly cpus: CpuSet;
}

/**
 * The masks of a process's threads before the agent moved any. A thread that is not listed had the main thread's mask,
 * or started later and would have inherited it.
 */
export interface OriginalMasks {
  readonly main: CpuSet;
  readonly odd: readonly OddThread[];
}

/** Returns the original mask of a thread. */
export function originalMaskOf(
  { main, odd }: OriginalMasks,
  tid: number,
  startOf: (tid: number) => number | undefined,
): CpuSet {
  const own = odd.find((thread) => thread.tid === tid);
  return own !== undefined && startOf(tid) === own.start ? own.cpus : main;
}
