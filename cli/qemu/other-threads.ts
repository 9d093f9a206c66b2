import type { Affinity } from '../../native/affinity.ts';
import { moveThreads } from '../../native/pin-threads.ts';
import type { Qmp, QmpCpu } from '../../native/qmp.ts';
import { SyscallError } from '../../native/syscall-error.ts';

/** QEMU's threads other than vCPUs: emulator, IO threads, workers. */
export interface OtherThreads {
  /** How many are on their new CPUs. */
  readonly threads: number;
  /** Ids of those that the kernel left elsewhere. */
  readonly left: readonly number[];
}

/**
 * Times that the threads are listed: one that an unpinned thread started meanwhile is seen the next time, and one that a
 * pinned thread starts has its CPUs from birth.
 */
const MOST_ROUNDS = 8;

/** Moves every thread of QEMU except vCPUs. `putBack` restores their CPUs. */
export function moveOthers(affinity: Affinity, qmp: Qmp, cpus: readonly QmpCpu[], words: Uint32Array) {
  const vcpus = new Set(cpus.map(({ tid }) => tid));
  const before = new Map<number, Uint32Array>();
  const left: number[] = [];
  let threads = 0;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const found = qmp.threads().filter((tid) => !vcpus.has(tid) && !before.has(tid));
    if (found.length === 0) break;
    for (const tid of found) before.set(tid, allowedOf(affinity, tid) ?? words);
    const moved = moveThreads(affinity, found, words);
    threads += moved.there.length;
    left.push(...moved.left);
  }
  const putBack = () => {
    for (const [tid, own] of before) moveThreads(affinity, [tid], own);
  };
  return { threads, left, putBack };
}

/** Undefined if the thread has ended. */
function allowedOf(affinity: Affinity, tid: number): Uint32Array | undefined {
  try {
    return affinity.get(tid);
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
