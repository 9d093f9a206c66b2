import { opendirSync, readdirSync, statSync } from 'node:fs';
import { CpuSet } from '../../model/cpu-set.ts';
import { type Affinity, SyscallError } from '../../native/affinity.ts';
import { isThreadOf } from '../../native/thread-group.ts';
import { startOf, threadNameOf } from './proc.ts';

/**
 * Maximum threads of a process to list, oldest first. A process can start any number, and each costs a few calls at
 * every check; QEMU has one for each vCPU and a few dozen more.
 */
const MOST_THREADS = 4096;

/** The properties of threads that the duties need. */
export interface Threads {
  /** Thread ids of a process, including the main thread, at most MOST_THREADS; empty if it has ended. */
  list(pid: number): number[];
  /** Whether the thread belongs to the process at this moment. */
  has(pid: number, tid: number): boolean;
  /** The number of threads, and a number that differs for another process with the same id. One system call. */
  glance(pid: number): { readonly count: number; readonly identity: number };
  /** A thread's name; undefined if it has ended. */
  name(pid: number, tid: number): string | undefined;
  /** When a thread started, in clock ticks since the machine's start; undefined if it has ended. */
  start(pid: number, tid: number): number | undefined;
}

/** Link count of a directory without entries: its name and its own `.`. */
const LINKS_OF_NONE = 2;

export const procThreads: Threads = createProcThreads(MOST_THREADS);

/** @param most maximum threads of a process to list */
export function createProcThreads(most: number): Threads {
  const glance = (pid: number) => {
    // The kernel adds the number of threads to the links of this directory (proc_task_getattr in fs/proc/base.c).
    const found = statSync(`/proc/${pid}/task`, { throwIfNoEntry: false });
    return { count: (found?.nlink ?? LINKS_OF_NONE) - LINKS_OF_NONE, identity: found?.ino ?? 0 };
  };
  return {
    list(pid) {
      const directory = `/proc/${pid}/task`;
      try {
        return (glance(pid).count <= most ? readdirSync(directory) : firstEntries(directory, most)).map(Number);
      } catch {
        return [];
      }
    },
    glance,
    has: isThreadOf,
    name: threadNameOf,
    start: startOf,
  };
}

function firstEntries(path: string, most: number): string[] {
  const directory = opendirSync(path);
  try {
    const names: string[] = [];
    while (names.length < most) {
      const entry = directory.readSync();
      if (entry === null) break;
      names.push(entry.name);
    }
    return names;
  } finally {
    directory.closeSync();
  }
}

/** The CPUs that a thread may use; undefined if it has ended. */
export function allowedOf(affinity: Affinity, tid: number): CpuSet | undefined {
  try {
    return CpuSet.fromWords(affinity.get(tid));
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
