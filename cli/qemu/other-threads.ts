import { type Affinity, SyscallError } from '../../native/affinity.ts';
import { moveThreads } from '../../native/pin-threads.ts';
import type { Qmp, QmpCpu } from '../../native/qmp.ts';

/** QEMU's threads other than vCPUs: emulator, IO threads, workers. */
export interface OtherThreads {
  /** Number of threads on their new CPUs. */
  readonly threads: number;
  /** Ids of threads that the kernel did not move. */
  readonly left: readonly number[];
}

/**
 * Number of times that the threads are listed. A thread that an unpinned thread started in between is found in the next
 * round; one that a pinned thread starts inherits its CPUs.
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
