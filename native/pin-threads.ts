import { EVERY_CPU, SyscallError, type ThreadAffinity } from './affinity.ts';

export interface ThreadPin {
  readonly tid: number;
  readonly words: Uint32Array;
  /** Its current CPUs, if the caller knows them; otherwise they are read from the kernel. */
  readonly before?: Uint32Array;
}

/** The kernel put a thread on other CPUs than requested: its cpuset does not allow all of them. */
export class PinError extends Error {
  readonly got: Uint32Array;

  constructor(tid: number, got: Uint32Array) {
    super(`thread ${tid} was given other CPUs than asked for: its cpuset does not allow all of them`);
    this.name = 'PinError';
    this.got = got;
  }
}

/**
 * Confines all threads or none, and verifies the result, except of EVERY_CPU, which restricts nothing.
 * @returns a function that restores the previous CPUs
 * @throws SyscallError if the kernel refuses, PinError if it sets other CPUs than requested
 */
export function pinThreads(affinity: ThreadAffinity, pins: readonly ThreadPin[]): () => void {
  const before: Uint32Array[] = [];
  const undo = () => {
    before.forEach((words, i) => {
      try {
        affinity.set(pins[i]?.tid ?? 0, words);
      } catch (error) {
        // A thread that has ended needs nothing; any other refusal is already being reported.
        if (!(error instanceof SyscallError)) throw error;
      }
    });
  };
  try {
    for (const { tid, words, before: mask } of pins) {
      before.push(mask ?? affinity.get(tid));
      affinity.set(tid, words);
    }
    for (const { tid, words } of pins) {
      const got = affinity.get(tid);
      if (words !== EVERY_CPU && !areEqual(got, words)) throw new PinError(tid, got);
    }
  } catch (error) {
    undo();
    throw error;
  }
  return undo;
}

/** Moves each thread that it can: the kernel pins some itself (io_uring's workers), and others end meanwhile. */
export function moveThreads(affinity: ThreadAffinity, tids: readonly number[], words: Uint32Array) {
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

/** Whether two masks contain the same CPUs; trailing empty words do not matter. */
function areEqual(a: Uint32Array, b: Uint32Array): boolean {
  if (a === b) return true;
  const length = Math.max(a.length, b.length);
  for (let i = 0; i < length; i++) if ((a[i] ?? 0) !== (b[i] ?? 0)) return false;
  return true;
}
