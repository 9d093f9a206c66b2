import { CpuSet } from '../../model/cpu-set.ts';
import type { Affinity } from '../../native/affinity.ts';
import type { OvsProcess } from '../open-vswitch/daemons.ts';
import type { Threads } from '../processes/threads.ts';
import { type OriginalMasks, originalMaskOf } from './original-masks.ts';
import { createPmdFinder } from './pmd-threads.ts';
import { createThreadMover, type TargetOf } from './thread-mover.ts';

/**
 * Where a process's threads should be: exactly on `only`; or where they are but on `avoid`, and a thread that would be
 * nowhere then, on `otherwise`.
 */
export type CpuTarget = { readonly only: CpuSet } | { readonly avoid: CpuSet; readonly otherwise: CpuSet };

/** What one pass over a process's threads found and did. */
export interface PassResult {
  readonly threads: number;
  /** Threads whose mask was changed. */
  readonly moved: number;
  /** Threads that were elsewhere than the last pass had left them: another process sets their CPUs. */
  readonly displaced: number;
  /** Threads that the kernel holds on fewer CPUs than they should have (their cpuset is smaller). */
  readonly clipped: number;
  /** errno names of refused changes. A thread that ended meanwhile is none. */
  readonly errors: readonly string[];
}

/** A thread as it is now, for people. */
export interface ThreadState {
  readonly tid: number;
  readonly name: string;
  readonly allowed: CpuSet;
  /** `pmd`: left alone; `clipped`: its cpuset holds it on fewer CPUs; or the errno's name with which it was refused. */
  readonly note: string | undefined;
}

export interface ProcessAffinityDeps {
  readonly affinity: Affinity;
  readonly threads: Threads;
  /** The CPUs this machine has online: the kernel shows masks without the others. */
  readonly machine: () => CpuSet;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Rounds in one pass for threads born while it runs; a round without news ends it. */
const MOST_ROUNDS = 5;
/** Looks that it takes to see every thread. The main thread is part of each; one call for each thread is what it costs. */
const LOOKS_FOR_ALL = 2;

const NOTHING_DONE: PassResult = { threads: 0, moved: 0, displaced: 0, clipped: 0, errors: [] };

/** The threads of a process at one moment. */
export interface ThreadSnapshot {
  readonly tids: readonly number[];
  /** Those of `tids` that are poll mode drivers. */
  readonly pmd: ReadonlySet<number>;
}

/** Keeps the threads of one process where they should be, and gives them back what they had. */
export interface ProcessAffinity {
  readonly process: OvsProcess;
  /** Lists the threads. */
  snapshot(): ThreadSnapshot;
  /** CPUs that poll mode driver threads, which are left alone, may run on now; the threads are those last listed. */
  pmdCpus(): CpuSet;
  /**
   * Brings every thread to the target. A thread that is there already costs one call that changes nothing.
   * @param snapshot spares the first listing
   */
  apply(target: CpuTarget, snapshot?: ThreadSnapshot): PassResult;
  /** Whether the number of threads, the main thread and half of the others, in turns, are as the last pass left them. */
  isAsLeft(): boolean;
  /** Threads, poll mode drivers aside, that may run on one of the CPUs now. */
  threadsOn(cpus: CpuSet): number[];
  /** Where the threads were when `remember` was called, or as it was given. */
  readonly originalMasks: OriginalMasks | undefined;
  /** Notes where the threads are now, or takes what is remembered from before; later calls of `apply` change masks. */
  remember(known?: OriginalMasks): void;
  /** Gives each thread its original mask and forgets it. Does nothing where none was remembered. */
  restore(): PassResult;
  /** Gives each thread its original mask as far as it is in `free`; one that had none of that stays where it is. */
  restoreWithin(free: CpuSet): PassResult;
  describe(): ThreadState[];
}

export function createProcessAffinity(process: OvsProcess, deps: ProcessAffinityDeps): ProcessAffinity {
  const { threads } = deps;
  const { pid } = process;
  // Only ovs-vswitchd has poll mode drivers; whatever ovsdb-server calls its threads, they are ordinary.
  const hasPmd = process.name === 'ovs-vswitchd' && process.role === 'daemon';
  const findPmd = hasPmd ? createPmdFinder(pid, threads, deps.now) : () => new Set<number>();
  const threadMover = createThreadMover(deps.affinity);
  let originalMasks: OriginalMasks | undefined;
  let last: ThreadSnapshot = { tids: [], pmd: new Set() };
  let cursor = 0;
  let identity: number | undefined;

  const list = (): ThreadSnapshot => {
    const tids = threads.list(pid);
    last = { tids, pmd: findPmd(tids) };
    return last;
  };

  const pass = (targetOf: TargetOf, snapshot = list()): PassResult => {
    const done = new Set<number>();
    let moved = 0;
    let now = snapshot;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      if (round > 0) now = list();
      const fresh = ordinary(now).filter((tid) => !done.has(tid));
      for (const tid of fresh) {
        done.add(tid);
        if (threadMover.move(tid, targetOf)) moved++;
      }
      // Where nothing was changed, nothing can have been born with the old mask in the middle of it.
      if (fresh.length === 0 || moved === 0) break;
    }
    threadMover.forgetOthers(now.tids);
    for (const tid of now.pmd) threadMover.see(tid);
    return { threads: done.size, moved, displaced: threadMover.takeDisplaced(), ...threadMover.trouble() };
  };

  return {
    process,
    snapshot: list,
    get originalMasks() {
      return originalMasks;
    },
    pmdCpus() {
      let cpus = CpuSet.EMPTY;
      for (const tid of last.pmd) cpus = cpus.union(threadMover.current(tid) ?? CpuSet.EMPTY);
      return cpus;
    },
    apply(target, snapshot) {
      if ('only' in target) {
        const only = target.only.intersect(deps.machine());
        return pass(() => only, snapshot);
      }
      const otherwise = target.otherwise.minus(target.avoid).intersect(deps.machine());
      return pass((mask) => {
        const rest = mask.minus(target.avoid);
        return rest.isEmpty ? otherwise : rest;
      }, snapshot);
    },
    isAsLeft() {
      const { tids } = last;
      const before = identity;
      const now = threads.glance(pid);
      identity = now.identity;
      if (now.count !== tids.length || (before !== undefined && before !== identity)) return false;
      if (!threadMover.isAsSeen(pid)) return false;
      for (let i = 0; i < Math.ceil(tids.length / LOOKS_FOR_ALL); i++) {
        cursor = (cursor + 1) % tids.length;
        const tid = tids[cursor];
        if (tid !== undefined && tid !== pid && !threadMover.isAsSeen(tid)) return false;
      }
      return true;
    },
    threadsOn(cpus) {
      const now = threads.list(pid);
      const polling = findPmd(now);
      return now.filter((tid) => !polling.has(tid) && threadMover.current(tid)?.intersects(cpus) === true);
    },
    remember(known) {
      originalMasks =
        known ?? rememberMasks(pid, ordinary(list()), threadMover.current, (tid) => threads.start(pid, tid));
    },
    restore() {
      if (originalMasks === undefined) return NOTHING_DONE;
      const before = originalMasks;
      const result = pass((_mask, tid) => originalMaskOf(before, tid, (one) => threads.start(pid, one)));
      originalMasks = undefined;
      return result;
    },
    restoreWithin(free) {
      if (originalMasks === undefined) return NOTHING_DONE;
      const before = originalMasks;
      return pass((mask, tid) => {
        const rest = originalMaskOf(before, tid, (one) => threads.start(pid, one))
          .intersect(deps.machine())
          .intersect(free);
        return rest.isEmpty ? mask : rest;
      });
    },
    describe() {
      const now = threads.list(pid);
      const polling = findPmd(now);
      return now.flatMap((tid) => {
        const allowed = threadMover.current(tid);
        if (allowed === undefined) return [];
        const note = polling.has(tid) ? 'pmd' : threadMover.noteOf(tid);
        return [{ tid, name: threads.name(pid, tid) ?? '', allowed, note }];
      });
    },
  };
}

function ordinary({ tids, pmd }: ThreadSnapshot): readonly number[] {
  return pmd.size === 0 ? tids : tids.filter((tid) => !pmd.has(tid));
}

function rememberMasks(
  pid: number,
  tids: readonly number[],
  current: (tid: number) => CpuSet | undefined,
  startOf: (tid: number) => number | undefined,
): OriginalMasks | undefined {
  const main = current(pid);
  if (main === undefined) return undefined;
  const odd = tids.flatMap((tid) => {
    const cpus = current(tid);
    const start = cpus === undefined || cpus.equals(main) ? undefined : startOf(tid);
    return cpus === undefined || start === undefined ? [] : [{ tid, start, cpus }];
  });
  return { main, odd };
}
