import { CpuSet } from '../../model/cpu-set.ts';
import type { ThreadAffinity } from '../../native/affinity.ts';
import type { OvsProcess } from '../open-vswitch/daemons.ts';
import type { Threads } from '../processes/proc.ts';
import { type OriginalMasks, originalMaskOf } from './saved-masks.ts';
import { createPmdFinder, createThreadMover, type TargetOf } from './thread-mover.ts';

/** Exactly `only`; or the current CPUs without `avoid`, and `otherwise` where none remain. */
export type CpuTarget = { readonly only: CpuSet } | { readonly avoid: CpuSet; readonly otherwise: CpuSet };

export interface PassResult {
  readonly threads: number;
  readonly moved: number;
  /** Number of threads that were not where the last pass left them: another process sets their CPUs. */
  readonly displaced: number;
  /** Number of threads that the kernel confines to fewer CPUs than wanted (their cpuset is smaller). */
  readonly clipped: number;
  /** errno names of refused changes, without threads that have ended in the meantime. */
  readonly errors: readonly string[];
}

export interface ThreadState {
  readonly tid: number;
  readonly name: string;
  readonly allowed: CpuSet;
  /** `pmd`: not managed; `clipped`: its cpuset confines it to fewer CPUs; or the errno name of a refused change. */
  readonly note: string | undefined;
}

export interface ProcessAffinityDeps {
  readonly affinity: ThreadAffinity;
  readonly threads: Threads;
  /** The online CPUs of this machine: the kernel shows masks without the others. */
  readonly machine: () => CpuSet;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Maximum rounds of one pass to find threads that start while it runs; a round without new threads ends the pass. */
const MAX_ROUNDS = 5;
/** Maximum seconds after the first sight of an ovs-vswitchd in which a change of its main thread may be part of its start. */
const START_SECONDS = 60;
/** Number of checks that together cover every thread, at one call for each. Each check includes the main thread. */
const CHECKS_FOR_ALL = 4;

const NOTHING_DONE: PassResult = { threads: 0, moved: 0, displaced: 0, clipped: 0, errors: [] };

export interface ThreadSnapshot {
  readonly tids: readonly number[];
  readonly pmd: ReadonlySet<number>;
}

/** Keeps the threads of one process on their CPUs, and restores their original masks. */
export type ProcessAffinity = ReturnType<typeof createProcessAffinity>;

export function createProcessAffinity(process: OvsProcess, deps: ProcessAffinityDeps) {
  const { threads } = deps;
  const { pid } = process;
  // Only ovs-vswitchd has poll mode drivers; threads of ovsdb-server are ordinary, whatever their names.
  const hasPmd = process.name === 'ovs-vswitchd' && process.role === 'daemon';
  const findPmd = hasPmd ? createPmdFinder(pid, threads, deps.now) : () => new Set<number>();
  const threadMover = createThreadMover(deps.affinity);
  let originalMasks: OriginalMasks | undefined;
  let last: ThreadSnapshot = { tids: [], pmd: new Set() };
  let cursor = 0;
  let identity: number | undefined;
  const afterStart = hasPmd ? trackStart(pid, threadMover, deps.now) : (masks: OriginalMasks | undefined) => masks;

  const list = (): ThreadSnapshot => {
    const tids = threads.list(pid);
    last = { tids, pmd: findPmd(tids) };
    return last;
  };

  const pass = (targetOf: TargetOf, snapshot = list()): PassResult => {
    const done = new Set<number>();
    let moved = 0;
    let now = snapshot;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (round > 0) now = list();
      const fresh = ordinary(now).filter((tid) => !done.has(tid));
      for (const tid of fresh) {
        done.add(tid);
        if (threadMover.move(tid, targetOf)) moved++;
      }
      // If no mask changed, no thread can have started with an old mask in between.
      if (fresh.length === 0 || moved === 0) break;
    }
    threadMover.forgetOthers(now.tids);
    for (const tid of now.pmd) threadMover.see(tid);
    return { threads: done.size, moved, displaced: threadMover.takeDisplaced(), ...threadMover.trouble() };
  };

  const currentMasks = (): OriginalMasks | undefined => {
    const tids = ordinary(list());
    const main = threadMover.current(pid);
    if (main === undefined) return undefined;
    const odd = tids.flatMap((tid) => {
      const cpus = threadMover.current(tid);
      const start = cpus === undefined || cpus.equals(main) ? undefined : threads.start(pid, tid);
      return cpus === undefined || start === undefined ? [] : [{ tid, start, cpus }];
    });
    return { main, odd };
  };

  return {
    process,
    snapshot: list,
    /** The masks that `remember` recorded or received. */
    get originalMasks() {
      return originalMasks;
    },
    /** CPUs that the poll mode driver threads of the last listing, which are not managed, may run on now. */
    pmdCpus(): CpuSet {
      let cpus = CpuSet.EMPTY;
      for (const tid of last.pmd) cpus = cpus.union(threadMover.current(tid) ?? CpuSet.EMPTY);
      return cpus;
    },
    /** A thread that is there already costs one call. @param snapshot replaces the first listing */
    apply(target: CpuTarget, snapshot?: ThreadSnapshot): PassResult {
      originalMasks = afterStart(originalMasks);
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
    /** Whether the thread count, the main thread and a quarter of the others, in turns, are as the last pass left them. */
    isAsLeft() {
      const { tids } = last;
      const before = identity;
      const now = threads.summary(pid);
      identity = now.identity;
      if (now.count !== tids.length || (before !== undefined && before !== identity)) return false;
      if (!threadMover.isAsSeen(pid)) return false;
      for (let i = 0; i < Math.ceil(tids.length / CHECKS_FOR_ALL); i++) {
        cursor = (cursor + 1) % tids.length;
        const tid = tids[cursor];
        if (tid !== undefined && tid !== pid && !threadMover.isAsSeen(tid)) return false;
      }
      return true;
    },
    /** Threads that may run on one of the CPUs now, except poll mode drivers. */
    threadsOn(cpus: CpuSet): number[] {
      const now = threads.list(pid);
      const polling = findPmd(now);
      return now.filter((tid) => !polling.has(tid) && threadMover.current(tid)?.intersects(cpus) === true);
    },
    /** Records the current masks, or uses the given ones. Call it before `apply`, which changes masks. */
    remember(masks?: OriginalMasks) {
      originalMasks = masks ?? currentMasks();
    },
    /** Restores each thread's original mask. Does nothing without recorded masks. */
    restore(): PassResult {
      originalMasks = afterStart(originalMasks);
      if (originalMasks === undefined) return NOTHING_DONE;
      const before = originalMasks;
      return pass((_mask, tid) => originalMaskOf(before, tid, (one) => threads.start(pid, one)));
    },
    forget() {
      originalMasks = undefined;
    },
    describe(): ThreadState[] {
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

/**
 * While it starts, ovs-vswitchd confines its main thread to one CPU: 0.1 s to measure a clock, seconds to start DPDK. The
 * CPUs that it gives the thread back are its original ones; no other process moved it. Source:
 * pmd_perf_estimate_tsc_frequency in lib/dpif-netdev-perf.c and dpdk_init__ in lib/dpdk.c of Open vSwitch.
 * @returns a function from the remembered masks to those after the start
 */
function trackStart(pid: number, threadMover: ReturnType<typeof createThreadMover>, now: () => number) {
  const firstSeen = now();
  let isOver = false;
  return (masks: OriginalMasks | undefined): OriginalMasks | undefined => {
    const left = threadMover.lastSeen(pid);
    if (isOver || masks === undefined || left === undefined) return masks;
    const mask = threadMover.current(pid);
    if (mask === undefined || mask.equals(left) || !masks.main.isSubsetOf(mask)) return masks;
    isOver = true;
    if (now() - firstSeen > START_SECONDS * 1000) return masks;
    threadMover.see(pid);
    return mask.equals(masks.main) ? masks : { ...masks, main: mask };
  };
}

function ordinary({ tids, pmd }: ThreadSnapshot): readonly number[] {
  return pmd.size === 0 ? tids : tids.filter((tid) => !pmd.has(tid));
}
