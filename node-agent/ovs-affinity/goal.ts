import { CpuSet } from '../../model/cpu-set.ts';

/** The CPUs to be on now, and whether more should be taken later. */
export interface Step {
  readonly now: CpuSet;
  /** The set to grow to, when it is larger than `now`. */
  readonly later: CpuSet | undefined;
}

/**
 * How to get from the CPUs applied last to those that are free: what is no longer free is left at once, what has become
 * free is taken later. ovs-vswitchd makes its threads anew, and drops its datapath flows, when the number of its CPUs
 * changes, so many growths in a row should be one. The first set, and one without any CPU of the last, is taken as it is.
 */
export function step(applied: CpuSet | undefined, free: CpuSet): Step {
  const kept = applied?.intersect(free) ?? CpuSet.EMPTY;
  if (kept.isEmpty || kept.equals(free)) return { now: free, later: undefined };
  return { now: kept, later: free };
}
