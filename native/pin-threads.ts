import { type Affinity, EVERY_CPU } from './affinity.ts';
import { SyscallError } from './syscall-error.ts';

/** Where one thread is to run: 32-bit words as `Affinity` has them. */
export interface ThreadPin {
  readonly tid: number;
  readonly words: Uint32Array;
  /** Where it is now, for a caller that knows; otherwise the kernel is asked. */
  readonly before?: Uint32Array;
  /** Take what the kernel gives: for CPUs that restrict nothing, of which a cpuset may allow fewer. Default false. */
  readonly loose?: boolean;
}

/** A thread that the kernel put elsewhere than asked: its cpuset does not allow all of those CPUs. */
export class PinError extends Error {
  readonly tid: number;
  /** The CPUs that the thread was given, as words. */
  readonly got: Uint32Array;

  constructor(tid: number, got: Uint32Array) {
    super(`thread ${tid} was given other CPUs than asked for: its cpuset does not allow all of them`);
    this.name = 'PinError';
    this.tid = tid;
    this.got = got;
  }
}

/**
 * Confines threads and reads back that each of them is where it was put: all of them, or none. After a failure those
 * that were moved have the CPUs they had before.
 * @returns a function that gives them those CPUs back
 * @throws SyscallError if the kernel refuses, PinError if it gives other CPUs than asked for
 */
export function pinThreads(affinity: Affinity, pins: readonly ThreadPin[]): () => void {
  const before: Uint32Array[] = [];
  const undo = () => {
    before.forEach((words, i) => {
      putBack(affinity, pins[i]?.tid ?? 0, words);
    });
  };
  try {
    for (const { tid, words, before: known } of pins) {
      before.push(known ?? affinity.get(tid));
      affinity.set(tid, words);
    }
    for (const { tid, words, loose } of pins) {
      const got = affinity.get(tid);
      if (loose !== true && !areEqual(got, words)) throw new PinError(tid, got);
    }
  } catch (error) {
    undo();
    throw error;
  }
  return undo;
}

/** The result of moving threads one by one. */
export interface Moved {
  /** Threads that are there now, by id. */
  readonly there: readonly number[];
  /** Threads that the kernel left elsewhere, by id. Those that have ended are in neither. */
  readonly left: readonly number[];
}

/**
 * Gives threads the same CPUs, each as far as it can be moved, and reads back where it is. The kernel pins some threads itself
 * (io_uring's workers), and others end meanwhile: none of them keeps the rest from being moved.
 */
export function moveThreads(affinity: Affinity, tids: readonly number[], words: Uint32Array): Moved {
  const there: number[] = [];
  const left: number[] = [];
  for (const tid of tids) {
    try {
      affinity.set(tid, words);
      (words === EVERY_CPU || areEqual(affinity.get(tid), words) ? there : left).push(tid);
    } catch (error) {
      if (!(error instanceof SyscallError)) throw error;
      if (error.code !== 'ESRCH') left.push(tid);
    }
  }
  return { there, left };
}

/** A thread that ended meanwhile needs nothing; any other refusal is the one that is being reported already. */
function putBack(affinity: Affinity, tid: number, words: Uint32Array): void {
  try {
    affinity.set(tid, words);
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
  }
}

/** Whether two masks name the same CPUs; empty words at the end say nothing. */
function areEqual(a: Uint32Array, b: Uint32Array): boolean {
  if (a === b) return true;
  const length = Math.max(a.length, b.length);
  for (let i = 0; i < length; i++) if ((a[i] ?? 0) !== (b[i] ?? 0)) return false;
  return true;
}
