import type { CpuSet } from '../../model/cpu-set.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { allowedOf, type Threads } from '../processes/proc.ts';

/** The kernel's answer to a target that it did not apply as requested: the request is not repeated. */
interface Settled {
  readonly target: CpuSet;
  readonly effective: CpuSet;
  readonly refused?: string;
}

export type TargetOf = (mask: CpuSet, tid: number) => CpuSet;

export function createThreadMover(affinity: ThreadAffinity) {
  const settled = new Map<number, Settled>();
  const seen = new Map<number, CpuSet>();
  let displaced = 0;

  const current = (tid: number) => allowedOf(affinity, tid);

  const see = (tid: number): CpuSet | undefined => {
    const mask = current(tid);
    if (mask !== undefined) seen.set(tid, mask);
    return mask;
  };

  /** @returns the resulting mask: the old one if the kernel refuses the target or has refused it before */
  const put = (tid: number, mask: CpuSet, target: CpuSet): CpuSet => {
    const before = settled.get(tid);
    if (before?.target.equals(target) && before.effective.equals(mask)) return mask;
    try {
      affinity.set(tid, target.toWords(1));
    } catch (error) {
      if (!(error instanceof SyscallError)) throw error;
      if (error.code !== 'ESRCH') settled.set(tid, { target, effective: mask, refused: error.code });
      return mask;
    }
    const effective = see(tid) ?? target;
    if (!effective.equals(target)) settled.set(tid, { target, effective });
    return effective;
  };

  return {
    current,
    see,
    lastSeen: (tid: number) => seen.get(tid),
    /** @returns whether the thread's mask changed */
    move(tid: number, targetOf: TargetOf): boolean {
      const left = seen.get(tid);
      const mask = see(tid);
      if (mask === undefined) return false;
      const target = targetOf(mask, tid);
      const effective = mask.equals(target) ? mask : put(tid, mask, target);
      if (effective.equals(target)) {
        settled.delete(tid);
        // If the kernel does not accept the target, a cpuset changed the mask, not another process.
        if (left !== undefined && !mask.equals(left)) displaced++;
      }
      return !effective.equals(mask);
    },
    takeDisplaced(): number {
      const count = displaced;
      displaced = 0;
      return count;
    },
    isAsSeen(tid: number): boolean {
      const mask = current(tid);
      const before = seen.get(tid);
      return mask === undefined || before === undefined ? mask === before : mask.equals(before);
    },
    forgetOthers(tids: readonly number[]): void {
      if (seen.size <= tids.length && settled.size === 0) return;
      const alive = new Set(tids);
      for (const threads of [settled, seen]) for (const tid of threads.keys()) if (!alive.has(tid)) threads.delete(tid);
    },
    trouble(): { readonly clipped: number; readonly errors: readonly string[] } {
      const errors = [...settled.values()].map(({ refused }) => refused).filter((code) => code !== undefined);
      return { clipped: settled.size - errors.length, errors };
    },
    noteOf(tid: number): string | undefined {
      const answer = settled.get(tid);
      return answer === undefined ? undefined : (answer.refused ?? 'clipped');
    },
  };
}

/** Milliseconds after which a thread's name is final: it inherits its parent's name and sets its own at once. */
const NAME_FINAL_MILLISECONDS = 1000;

/**
 * Finds the poll mode driver threads of an ovs-vswitchd, which OVS pins itself, by their names: pmd-c<core>/id:<n>.
 * Source: dp_netdev_configure_pmd and reload in lib/dpif-netdev.c of Open vSwitch.
 */
export function createPmdFinder(pid: number, threads: Threads, now: () => number) {
  const seen = new Map<number, { readonly first: number; readonly isPmd: boolean; readonly final: boolean }>();
  return (tids: readonly number[]): ReadonlySet<number> => {
    const alive = new Set(tids);
    for (const tid of seen.keys()) if (!alive.has(tid)) seen.delete(tid);
    const at = now();
    const pmd = new Set<number>();
    for (const tid of tids) {
      let entry = seen.get(tid);
      if (entry?.final !== true) {
        const isPmd = /^pmd-c\d/.test(threads.name(pid, tid) ?? '');
        const first = entry?.first ?? at;
        entry = { first, isPmd, final: isPmd || at - first >= NAME_FINAL_MILLISECONDS };
        seen.set(tid, entry);
      }
      if (entry.isPmd) pmd.add(tid);
    }
    return pmd;
  };
}
