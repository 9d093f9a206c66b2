import { CpuSet } from '../../model/cpu-set.ts';
import type { ThreadAffinity } from '../../native/affinity.ts';
import type { OvsProcess } from '../open-vswitch/daemons.ts';
import type { Threads } from '../processes/proc.ts';
import { UnreadableError, unlessUnreadable } from '../processes/readable.ts';
import {
  DaemonStart,
  type OriginalMasks,
  originalMaskOf,
  PmdFinder,
  type TargetOf,
  ThreadMover,
} from './thread-mover.ts';

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
  /** Why not all threads are known. */
  readonly unreadable?: string;
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
  readonly nowSeconds: () => number;
}

/** Maximum rounds of one pass to find threads that start while it runs; a round without new threads ends the pass. */
const MAX_ROUNDS = 5;
/** Number of checks that together cover every thread, at one call for each. Each check includes the main thread. */
const CHECKS_FOR_ALL = 6;

const NOTHING_DONE: PassResult = { threads: 0, moved: 0, displaced: 0, clipped: 0, errors: [] };

export interface ThreadSnapshot {
  readonly tids: readonly number[];
  readonly pmd: ReadonlySet<number>;
}

const NO_PMD: ReadonlySet<number> = new Set();

/**
 * Keeps the threads of one process on their CPUs, and restores their original masks.
 *
 * Owner: OvsProcesses, until the process has ended. Age: the threads are those of the last listing that succeeded. End:
 * the original masks with `forget`, everything with the process.
 */
export class ProcessAffinity {
  readonly process: OvsProcess;
  readonly #deps: ProcessAffinityDeps;
  readonly #threadMover: ThreadMover;
  /** Only ovs-vswitchd has them; threads of ovsdb-server are ordinary, whatever their names. */
  readonly #pmdFinder: PmdFinder | undefined;
  readonly #start: DaemonStart | undefined;
  #originalMasks: OriginalMasks | undefined;
  #last: ThreadSnapshot = { tids: [], pmd: NO_PMD };
  #unreadable: string | undefined;
  /** `restoring`: every thread was asked to return to its original mask, and some may not be there. */
  #mode: 'managed' | 'restoring' = 'managed';
  #cursor = 0;
  #identity: number | undefined;

  constructor(process: OvsProcess, deps: ProcessAffinityDeps) {
    const { pid, name, role } = process;
    this.process = process;
    this.#deps = deps;
    this.#threadMover = new ThreadMover(deps.affinity);
    if (name !== 'ovs-vswitchd' || role !== 'daemon') return;
    this.#pmdFinder = new PmdFinder(pid, deps.threads, deps.nowSeconds);
    this.#start = new DaemonStart(pid, this.#threadMover, deps.nowSeconds);
  }

  /** The masks that `adoptMasks` recorded or received. */
  get originalMasks(): OriginalMasks | undefined {
    return this.#originalMasks;
  }

  /** Why the last listing, or the last attempt to record or restore masks, failed: its threads are not all known. */
  get unreadable(): string | undefined {
    return this.#unreadable;
  }

  /** The threads that the next check compares with. */
  snapshot(): ThreadSnapshot {
    this.#last = this.#list();
    return this.#last;
  }

  /** Those of the last snapshot, if they cannot be read. */
  #list(): ThreadSnapshot {
    let listed = this.#last;
    this.#unreadable = undefined;
    this.#unlessUnreadable(() => {
      const tids = this.#deps.threads.list(this.process.pid);
      listed = { tids, pmd: this.#pmdFinder?.find(tids) ?? NO_PMD };
    });
    return listed;
  }

  #unlessUnreadable(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      this.#unreadable = error.message;
    }
  }

  /** CPUs that the poll mode driver threads of the last listing, which are not managed, may run on now. */
  pmdCpus(): CpuSet {
    let cpus = CpuSet.EMPTY;
    for (const tid of this.#last.pmd) cpus = cpus.union(this.#threadMover.current(tid) ?? CpuSet.EMPTY);
    return cpus;
  }

  /** A thread that is there already costs one call. @param snapshot replaces the first listing */
  apply(target: CpuTarget, snapshot?: ThreadSnapshot): PassResult {
    // A thread whose original mask could not be read would lose it.
    if (this.#originalMasks === undefined && this.#unreadable !== undefined) return this.#result(0, 0);
    this.#mode = 'managed';
    this.#originalMasks = this.#masksAfterStart();
    const machine = this.#deps.machine();
    if ('only' in target) {
      const only = target.only.intersect(machine);
      return this.#pass(() => only, snapshot);
    }
    const otherwise = target.otherwise.minus(target.avoid).intersect(machine);
    const avoiding = (mask: CpuSet) => {
      const rest = mask.minus(target.avoid);
      return rest.isEmpty ? otherwise : rest;
    };
    return this.#pass(avoiding, snapshot);
  }

  #masksAfterStart(): OriginalMasks | undefined {
    return this.#start === undefined ? this.#originalMasks : this.#start.masksAfter(this.#originalMasks);
  }

  #pass(targetOf: TargetOf, snapshot = this.snapshot()): PassResult {
    const done = new Set<number>();
    let moved = 0;
    let now = snapshot;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (round > 0) now = this.snapshot();
      const fresh = ordinary(now).filter((tid) => !done.has(tid));
      for (const tid of fresh) {
        done.add(tid);
        if (this.#threadMover.move(tid, targetOf)) moved++;
      }
      // If no mask changed, no thread can have started with an old mask in between.
      if (fresh.length === 0 || moved === 0) break;
    }
    this.#threadMover.forgetOthers(now.tids);
    for (const tid of now.pmd) this.#threadMover.observe(tid);
    return this.#result(done.size, moved);
  }

  #result(threads: number, moved: number): PassResult {
    const displaced = this.#threadMover.takeDisplaced();
    const result = { threads, moved, displaced, ...this.#threadMover.trouble() };
    return this.#unreadable === undefined ? result : { ...result, unreadable: this.#unreadable };
  }

  /** Whether the thread count, the main thread and a sixth of the others, in turns, are as the last pass left them. */
  isAsLeft(): boolean {
    const { pid } = this.process;
    const { tids } = this.#last;
    const before = this.#identity;
    const now = unlessUnreadable(() => this.#deps.threads.summary(pid), undefined);
    if (now === undefined || this.#unreadable !== undefined) return false;
    this.#identity = now.identity;
    if (now.count !== tids.length || (before !== undefined && before !== now.identity)) return false;
    if (!this.#threadMover.isUnchanged(pid)) return false;
    for (let i = 0; i < Math.ceil(tids.length / CHECKS_FOR_ALL); i++) {
      this.#cursor = (this.#cursor + 1) % tids.length;
      const tid = tids[this.#cursor];
      if (tid !== undefined && tid !== pid && !this.#threadMover.isUnchanged(tid)) return false;
    }
    return true;
  }

  /** Threads that may run on one of the CPUs now, except poll mode drivers. */
  threadsOn(cpus: CpuSet): number[] {
    return ordinary(this.#list()).filter((tid) => this.#threadMover.current(tid)?.intersects(cpus) === true);
  }

  /** Records the current masks, if they can be read, or uses the given ones. Call it before `apply`. */
  adoptMasks(masks?: OriginalMasks): void {
    this.#mode = 'managed';
    this.#originalMasks = masks;
    if (masks === undefined && this.#readAllThreads())
      this.#unlessUnreadable(() => {
        this.#originalMasks = this.#currentMasks();
      });
  }

  #readAllThreads(): boolean {
    this.snapshot();
    return this.#unreadable === undefined;
  }

  /** @throws UnreadableError */
  #currentMasks(): OriginalMasks | undefined {
    const { pid } = this.process;
    // Seen: what a daemon that starts gives it back before the first pass is noticed there (DaemonStart).
    const main = this.#threadMover.observe(pid);
    if (main === undefined) return undefined;
    const odd = ordinary(this.#last).flatMap((tid) => {
      const cpus = this.#threadMover.current(tid);
      const start = cpus === undefined || cpus.equals(main) ? undefined : this.#deps.threads.start(pid, tid);
      return cpus === undefined || start === undefined ? [] : [{ tid, start, cpus }];
    });
    return { main, odd };
  }

  /** Restores each thread's original mask. Does nothing without recorded masks. */
  restore(): PassResult {
    this.#originalMasks = this.#masksAfterStart();
    const masks = this.#originalMasks;
    if (masks === undefined) return NOTHING_DONE;
    const startOf = (tid: number) => this.#deps.threads.start(this.process.pid, tid);
    let result: PassResult | undefined;
    this.#unlessUnreadable(() => {
      result = this.#pass((_mask, tid) => originalMaskOf(masks, tid, startOf));
      this.#mode = 'restoring';
    });
    return result ?? this.#result(0, 0);
  }

  /** Only threads that `restore` left elsewhere, in case the kernel accepts their masks now; all, if it was not called. */
  restoreRemaining(): PassResult {
    if (this.#mode !== 'restoring' || this.#unreadable !== undefined) return this.restore();
    const tids = ordinary(this.snapshot());
    const moved = this.#threadMover.repeat(tids);
    this.#threadMover.forgetOthers(this.#last.tids);
    return this.#result(tids.length, moved);
  }

  forget(): void {
    this.#originalMasks = undefined;
  }

  describe(): ThreadState[] {
    const { tids, pmd } = this.#list();
    return tids.flatMap((tid) => {
      const allowed = this.#threadMover.current(tid);
      if (allowed === undefined) return [];
      const note = pmd.has(tid) ? 'pmd' : this.#threadMover.refusalOf(tid);
      const name = unlessUnreadable(() => this.#deps.threads.name(this.process.pid, tid), undefined);
      return [{ tid, name: name ?? '', allowed, note }];
    });
  }
}

function ordinary({ tids, pmd }: ThreadSnapshot): readonly number[] {
  return pmd.size === 0 ? tids : tids.filter((tid) => !pmd.has(tid));
}
