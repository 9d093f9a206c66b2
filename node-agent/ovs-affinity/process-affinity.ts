import type { OvsStatus } from '../../model/agent-status.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { ThreadAffinity } from '../../native/affinity.ts';
import type { OvsProcess } from '../open-vswitch/daemons.ts';
import type { Threads } from '../processes/proc.ts';
import { UnreadableError, unlessUnreadable } from '../processes/readable.ts';
import { ThreadNames } from '../processes/thread-names.ts';
import { type OriginalMasks, originalMaskOf, type TargetOf, ThreadMover } from './thread-mover.ts';

/** Exactly `only`; or the current CPUs without `avoid`, and `otherwise` where none remain. */
export type CpuTarget = { readonly only: CpuSet } | { readonly avoid: CpuSet; readonly otherwise: CpuSet };

export interface PassResult {
  readonly name: OvsProcess['name'];
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

export interface ProcessAffinityDeps {
  readonly affinity: ThreadAffinity;
  readonly threads: Threads;
  /** The online CPUs of this machine: the kernel shows masks without the others. */
  readonly machine: () => CpuSet;
  /** Monotonic. */
  readonly nowSeconds: () => number;
}

/** Maximum rounds of one pass to find threads that start while it runs; a round without new threads ends the pass. */
const MAX_ROUNDS = 5;
/** Maximum seconds after the first sight of an ovs-vswitchd in which its main thread's change is part of its start. */
const START_SECONDS = 60;
/** Number of checks that together cover every thread, at one call for each. Each check includes the main thread. */
const CHECKS_FOR_ALL = 8;

interface ThreadSnapshot {
  readonly tids: readonly number[];
  readonly pmd: ReadonlySet<number>;
}

const NO_PMD: ReadonlySet<number> = new Set();

/**
 * Poll mode drivers, which OVS pins itself: pmd-c<core>/id:<n>. Source: dp_netdev_configure_pmd and reload in
 * lib/dpif-netdev.c of Open vSwitch.
 */
const PMD_NAME = /^pmd-c\d/;

/**
 * Keeps the threads of one process on their CPUs, and restores their original masks.
 *
 * Owner: OvsProcesses, until the process has ended. Age: the threads are those of the last listing that succeeded. End:
 * the original masks with `restoreRemaining`, everything with the process.
 */
export class ProcessAffinity {
  readonly process: OvsProcess;
  readonly #deps: ProcessAffinityDeps;
  readonly #threadMover: ThreadMover;
  /** Only ovs-vswitchd has poll mode drivers; threads of ovsdb-server are ordinary, whatever their names. */
  readonly #names: ThreadNames | undefined;
  /** In monotonic seconds; undefined if its start is over, or never confines its main thread. */
  #startEndsAt: number | undefined;
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
    this.#names = new ThreadNames(pid, deps.threads, deps.nowSeconds);
    this.#startEndsAt = deps.nowSeconds() + START_SECONDS;
  }

  /** The masks that `adoptMasks` recorded or received. */
  get originalMasks(): OriginalMasks | undefined {
    return this.#originalMasks;
  }

  /** Why the last listing, or the last attempt to record or restore masks, failed: its threads are not all known. */
  get unreadable(): string | undefined {
    return this.#unreadable;
  }

  /** Lists the threads that the next pass moves and the next check compares with. */
  list(): ThreadSnapshot {
    this.#last = this.#read();
    return this.#last;
  }

  /** Those of the last listing, if they cannot be read. */
  #read(): ThreadSnapshot {
    let listed = this.#last;
    this.#unreadable = undefined;
    this.#unlessUnreadable(() => {
      const tids = this.#deps.threads.list(this.process.pid);
      const names = this.#names?.read(tids);
      const pmd = names === undefined ? NO_PMD : tids.filter((tid) => PMD_NAME.test(names.get(tid)?.name ?? ''));
      listed = { tids, pmd: new Set(pmd) };
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
    return unionOf([...this.#last.pmd].map((tid) => this.#threadMover.current(tid) ?? CpuSet.EMPTY));
  }

  /** A thread that is there already costs one call. @param isListed whether this pass has called `list` */
  apply(target: CpuTarget, isListed = false): PassResult {
    // A thread whose original mask could not be read would lose it.
    if (this.#originalMasks === undefined && this.#unreadable !== undefined) return this.#result(0, 0);
    this.#mode = 'managed';
    this.updateOriginalMasks();
    const machine = this.#deps.machine();
    if ('only' in target) {
      const only = target.only.intersect(machine);
      return this.#pass(() => only, isListed);
    }
    const otherwise = target.otherwise.minus(target.avoid).intersect(machine);
    const avoiding = (mask: CpuSet) => {
      const rest = mask.minus(target.avoid);
      return rest.isEmpty ? otherwise : rest;
    };
    return this.#pass(avoiding, isListed);
  }

  /**
   * While it starts, ovs-vswitchd confines its main thread to one CPU: 0.1 s to measure a clock, seconds to start DPDK.
   * The CPUs that it gives the thread back are its original ones; no other process moved it. Source:
   * pmd_perf_estimate_tsc_frequency in lib/dpif-netdev-perf.c and dpdk_init__ in lib/dpdk.c of Open vSwitch.
   */
  updateOriginalMasks(): void {
    const { pid } = this.process;
    const masks = this.#originalMasks;
    const left = this.#threadMover.lastObserved(pid);
    if (this.#startEndsAt === undefined || masks === undefined || left === undefined) return;
    const mask = this.#threadMover.current(pid);
    if (mask === undefined || mask.equals(left) || !masks.main.isSubsetOf(mask)) return;
    const isLate = this.#deps.nowSeconds() > this.#startEndsAt;
    this.#startEndsAt = undefined;
    if (isLate) return;
    this.#threadMover.observe(pid);
    if (!mask.equals(masks.main)) this.#originalMasks = { ...masks, main: mask };
  }

  #pass(targetOf: TargetOf, isListed = false): PassResult {
    const done = new Set<number>();
    let moved = 0;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (round > 0 || !isListed) this.list();
      const fresh = ordinary(this.#last).filter((tid) => !done.has(tid));
      for (const tid of fresh) {
        done.add(tid);
        if (this.#threadMover.move(tid, targetOf)) moved++;
      }
      // If no mask changed, no thread can have started with an old mask in between.
      if (fresh.length === 0 || moved === 0) break;
    }
    this.#threadMover.forgetOthers(this.#last.tids);
    for (const tid of this.#last.pmd) this.#threadMover.observe(tid);
    return this.#result(done.size, moved);
  }

  #result(threads: number, moved: number): PassResult {
    const result = { name: this.process.name, threads, moved, ...this.#threadMover.takeReport() };
    return this.#unreadable === undefined ? result : { ...result, unreadable: this.#unreadable };
  }

  /** Whether the thread count, the main thread and an eighth of the others, in turns, are as the last pass left them. */
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
    return ordinary(this.#read()).filter((tid) => this.#threadMover.current(tid)?.intersects(cpus) === true);
  }

  /** Records the current masks, if they can be read, or uses the given ones. Call it before `apply`. */
  adoptMasks(masks?: OriginalMasks): void {
    this.#mode = 'managed';
    this.#originalMasks = masks;
    if (masks !== undefined) return;
    this.list();
    if (this.#unreadable !== undefined) return;
    this.#unlessUnreadable(() => {
      this.#originalMasks = this.#currentMasks();
    });
  }

  /** @throws UnreadableError */
  #currentMasks(): OriginalMasks | undefined {
    const { pid } = this.process;
    // Seen: what a daemon that starts gives it back before the first pass is noticed there (`updateOriginalMasks`).
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
    this.updateOriginalMasks();
    const masks = this.#originalMasks;
    const { name, pid } = this.process;
    if (masks === undefined) return { name, threads: 0, moved: 0, displaced: 0, clipped: 0, errors: [] };
    const startOf = (tid: number) => this.#deps.threads.start(pid, tid);
    let result: PassResult | undefined;
    this.#unlessUnreadable(() => {
      result = this.#pass((_mask, tid) => originalMaskOf(masks, tid, startOf));
      this.#mode = 'restoring';
    });
    return result ?? this.#result(0, 0);
  }

  /**
   * Only threads that `restore` left elsewhere, in case the kernel accepts their masks now; all, if it was not called.
   * Forgets the original masks once every thread has its own.
   */
  restoreRemaining(): PassResult {
    const isRepeat = this.#mode === 'restoring' && this.#unreadable === undefined;
    const result = isRepeat ? this.#repeatRestore() : this.restore();
    const isComplete = result.clipped === 0 && result.errors.length === 0 && result.unreadable === undefined;
    if (isComplete) this.#originalMasks = undefined;
    return result;
  }

  #repeatRestore(): PassResult {
    const tids = ordinary(this.list());
    const moved = this.#threadMover.repeat(tids);
    this.#threadMover.forgetOthers(this.#last.tids);
    return this.#result(tids.length, moved);
  }

  /** For display. @param desired CPUs of ordinary threads */
  describe(desired: string | null): OvsStatus['processes'][number]['threads'] {
    const { tids, pmd } = this.#read();
    return tids.flatMap((tid) => {
      const allowed = this.#threadMover.current(tid)?.toString();
      if (allowed === undefined) return [];
      const name = unlessUnreadable(() => this.#deps.threads.name(this.process.pid, tid), undefined) ?? '';
      if (pmd.has(tid)) return [{ tid, name, allowed, desired: null, note: 'pmd' }];
      return [{ tid, name, allowed, desired, note: this.#threadMover.refusalOf(tid) ?? null }];
    });
  }
}

function ordinary({ tids, pmd }: ThreadSnapshot): readonly number[] {
  return pmd.size === 0 ? tids : tids.filter((tid) => !pmd.has(tid));
}
