import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';

export const cpus = z.string().transform((text) => CpuSet.parse(text));

/** A thread whose mask differed from its main thread's; `start` in clock ticks since the machine's start. */
export const oddThread = z.object({ tid: z.number().int().positive(), start: z.number(), cpus });

/** Before the agent moved any. A thread that is not listed had the main thread's mask, or would have inherited it. */
export interface OriginalMasks {
  readonly main: CpuSet;
  readonly odd: readonly Readonly<z.infer<typeof oddThread>>[];
}

/** @throws UnreadableError */
export function originalMaskOf(
  { main, odd }: OriginalMasks,
  tid: number,
  startOf: (tid: number) => number | undefined,
): CpuSet {
  const threadMask = odd.find((thread) => thread.tid === tid);
  return threadMask !== undefined && startOf(tid) === threadMask.start ? threadMask.cpus : main;
}
