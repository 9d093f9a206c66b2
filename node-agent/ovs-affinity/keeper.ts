import { CpuSet } from '../../model/cpu-set.ts';
import type { Affinity } from '../../native/affinity.ts';
import { SyscallError } from '../../native/syscall-error.ts';
import type { OvsDaemon } from './daemons.ts';
import { createPmdFinder, type Threads } from './threads.ts';

/**
 * Where a process's threads should be: exactly on `only`; or where they are but on `avoid`, and a thread that would be
 * nowhere then, on `otherwise`.
 */
export type Goal = { readonly only: CpuSet } | { readonly avoid: CpuSet; readonly otherwise: CpuSet };

/** What one pass over a process's threads found and did. */
export interface PassResult {
  readonly threads: number;
  /** Threads whose mask was changed. */
  readonly moved: number;
  /** Threads that the kernel holds on fewer CPUs than they should have (their cpuset is smaller). */
  readonly clipped: number;
  /** errno names of refused changes. A thread that ended meanwhile is none. */
  readonly errors: readonly string[];
}

export interface KeeperDeps {
  readonly affinity: Affinity;
  readonly threads: Threads;
  /** The CPUs this machine has online: the kernel shows masks without the others. */
  readonly machine: () => CpuSet;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Rounds in one pass for threads born while it runs; a round without news ends it. */
const MOST_ROUNDS = 5;

/** Keeps the threads of one process where they should be, and remembers where they were. */
export interface Keeper {
  readonly daemon: OvsDaemon;
  /** Brings every thread to the goal. A thread that is there already costs one call that changes nothing. */
  apply(goal: Goal): PassResult;
  /** CPUs of the process's poll mode driver threads, which are left alone. */
  pmdCpus(): CpuSet;
  /** Threads, poll mode drivers aside, that may run on one of the CPUs now. */
  threadsOn(cpus: CpuSet): number[];
  /** Gives each thread its mask from before the first pass; one born since, the main thread's. */
  restore(): PassResult;
}

/** What the kernel made of a target that it did not take as it was: so that it is not asked again and again. */
interface Settled {
  readonly target: CpuSet;
  readonly effective: CpuSet;
  /** The errno's name, if it took nothing at all. */
  readonly refused?: string;
}

type TargetOf = (mask: CpuSet, tid: number) => CpuSet;

export function createKeeper(daemon: OvsDaemon, { affinity, threads, machine, now }: KeeperDeps): Keeper {
  const { pid } = daemon;
  // Only ovs-vswitchd has poll mode drivers; whatever ovsdb-server calls its threads, they are ordinary.
  const findPmd = daemon.name === 'ovs-vswitchd' ? createPmdFinder(pid, threads, now) : () => new Set<number>();
  const originals = new Map<number, CpuSet>();
  const settled = new Map<number, Settled>();

  const current = (tid: number): CpuSet => CpuSet.fromWords(affinity.get(tid));

  const ordinary = (): number[] => {
    const tids = threads.list(pid);
    const pmd = findPmd(tids);
    return pmd.size === 0 ? tids : tids.filter((tid) => !pmd.has(tid));
  };

  const pmdCpus = (): CpuSet => {
    let cpus = CpuSet.EMPTY;
    for (const tid of findPmd(threads.list(pid))) {
      cpus = cpus.union(quietly(() => current(tid)) ?? CpuSet.EMPTY);
    }
    return cpus;
  };

  const remember = () => {
    for (const tid of ordinary()) {
      const mask = quietly(() => current(tid));
      if (mask !== undefined) originals.set(tid, mask);
    }
  };

  /** One thread; whether it was changed. */
  const move = (tid: number, targetOf: TargetOf): boolean => {
    const mask = quietly(() => current(tid));
    if (mask === undefined) return false;
    const target = targetOf(mask, tid);
    if (mask.equals(target)) {
      settled.delete(tid);
      return false;
    }
    const before = settled.get(tid);
    if (before?.target.equals(target) && before.effective.equals(mask)) return false;
    try {
      affinity.set(tid, target.toWords(1));
    } catch (error) {
      if (!(error instanceof SyscallError)) throw error;
      if (error.code !== 'ESRCH') settled.set(tid, { target, effective: mask, refused: error.code });
      return false;
    }
    const effective = quietly(() => current(tid)) ?? target;
    if (effective.equals(target)) settled.delete(tid);
    else settled.set(tid, { target, effective });
    return !effective.equals(mask);
  };

  const pass = (targetOf: TargetOf): PassResult => {
    const done = new Set<number>();
    let moved = 0;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const fresh = ordinary().filter((tid) => !done.has(tid));
      for (const tid of fresh) {
        done.add(tid);
        if (move(tid, targetOf)) moved++;
      }
      if (fresh.length === 0 || moved === 0) break;
    }
    for (const tid of settled.keys()) if (!done.has(tid)) settled.delete(tid);
    const errors = [...settled.values()].map(({ refused }) => refused).filter((code) => code !== undefined);
    return { threads: done.size, moved, clipped: settled.size - errors.length, errors };
  };

  return {
    daemon,
    pmdCpus,
    apply(goal) {
      if (originals.size === 0) remember();
      if ('only' in goal) {
        const target = goal.only.intersect(machine());
        return pass(() => target);
      }
      const otherwise = goal.otherwise.minus(goal.avoid).intersect(machine());
      return pass((mask) => {
        const rest = mask.minus(goal.avoid);
        return rest.isEmpty ? otherwise : rest;
      });
    },
    threadsOn: (cpus) => ordinary().filter((tid) => quietly(() => current(tid))?.intersects(cpus) === true),
    restore() {
      const main = originals.get(pid);
      const result = pass((mask, tid) => originals.get(tid) ?? main ?? mask);
      originals.clear();
      settled.clear();
      return result;
    },
  };
}

/** The value, or undefined if the thread ended meanwhile. */
function quietly<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
