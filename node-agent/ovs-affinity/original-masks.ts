import type { CpuSet } from '../../model/cpu-set.ts';

/** Where one thread was that was not where its process's main thread was. */
export interface OddThread {
  readonly tid: number;
  /** Clock ticks since the machine's start. */
  readonly start: number;
  readonly cpus: CpuSet;
}

/**
 * Where a process's threads were before any was moved. A thread not named here was where the main thread was, or was
 * born since and would have been there.
 */
export interface OriginalMasks {
  readonly main: CpuSet;
  readonly odd: readonly OddThread[];
}

/** The CPUs that a thread is to have back. */
export function originalMaskOf(
  { main, odd }: OriginalMasks,
  tid: number,
  startOf: (tid: number) => number | undefined,
): CpuSet {
  const own = odd.find((thread) => thread.tid === tid);
  return own !== undefined && startOf(tid) === own.start ? own.cpus : main;
}
