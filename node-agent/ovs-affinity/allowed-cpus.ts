import { CpuSet } from '../../model/cpu-set.ts';
import type { AssignmentsView } from '../assignments/view.ts';

/** CPUs that have no owner and yet are not for Open vSwitch's ordinary threads, by why. */
export interface LeftOut {
  /** Of poll mode drivers, by their threads and by `pmd-cpu-mask`. */
  readonly pmd: CpuSet;
  /** Of isolcpus, if they are to be left out; no scheduler spreads threads over them. */
  readonly isolated: CpuSet;
  /** Promised to a container that is about to start, whatever the view says yet. */
  readonly vacated: CpuSet;
}

/** The CPUs that Open vSwitch may have, or undefined where that is not known; and why these, for people. */
export interface AllowedCpus {
  readonly cpus: CpuSet | undefined;
  readonly why: readonly string[];
}

/**
 * What is free without what is left out. Isolated CPUs are left out only where others remain, and so are those of poll
 * mode drivers: a switch without any CPU would be worse than one on CPUs that were to be kept quiet.
 */
export function allowedCpus({ free, owned, holds }: AssignmentsView, { pmd, isolated, vacated }: LeftOut): AllowedCpus {
  const why: string[] = [];
  const say = (cpus: CpuSet, text: string) => {
    if (!cpus.isEmpty) why.push(`${cpus}: ${text}`);
  };
  say(owned, 'owned by containers');
  say(vacated.minus(owned), 'vacated for a container that starts');
  say(pmd, 'poll mode drivers');
  if (free === undefined) {
    why.push(`only owned CPUs are left, since who owns which is not known yet: ${holds.join('; ')}`);
    return { cpus: undefined, why };
  }
  if (holds.length > 0) why.push(`nothing is taken, since not all is known: ${holds.join('; ')}`);
  const clear = free.minus(vacated);
  const open = clear.minus(pmd);
  if (open.isEmpty) return { cpus: clear, why };
  const quiet = open.minus(isolated);
  if (quiet.isEmpty) return { cpus: open, why };
  say(open.intersect(isolated), 'isolated');
  return { cpus: quiet, why };
}

/** The CPUs to be on now, and whether more should be taken later. */
export interface Step {
  readonly now: CpuSet;
  /** The set to grow to, when it is larger than `now`. */
  readonly later: CpuSet | undefined;
}

/**
 * How to get from the CPUs applied last to those that are free: what is no longer free is left at once, what has become
 * free is taken later. ovs-vswitchd creates its threads again, and drops its datapath flows, when the number of its CPUs
 * changes, so many growths in a row should be one. The first set, and one without any CPU of the last, is taken as it is.
 */
export function step(applied: CpuSet | undefined, free: CpuSet): Step {
  const kept = applied?.intersect(free) ?? CpuSet.EMPTY;
  if (kept.isEmpty || kept.equals(free)) return { now: free, later: undefined };
  return { now: kept, later: free };
}
