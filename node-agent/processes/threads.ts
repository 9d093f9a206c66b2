import { opendirSync, readdirSync, statSync } from 'node:fs';
import { isThreadOf } from '../../native/thread-group.ts';
import { startOf, threadNameOf } from './proc.ts';

/**
 * Threads of a process that are listed, the oldest first. A process starts as many as it likes, and each costs a few
 * calls at every look; QEMU has one for each vCPU and a few dozen more.
 */
export const MOST_THREADS = 4096;

/** The threads of processes, as far as those who keep them need to know. */
export interface Threads {
  /** Thread ids of a process, the main thread's included, at most MOST_THREADS; empty if it is gone. */
  list(pid: number): number[];
  /** Whether a thread is one of the process's at this moment. */
  has(pid: number, tid: number): boolean;
  /** How many there are, and a number that another process of the same id would not have. One call. */
  glance(pid: number): { readonly count: number; readonly identity: number };
  /** A thread's name; undefined if it is gone. */
  name(pid: number, tid: number): string | undefined;
  /** When a thread was started, in clock ticks since the machine's start; undefined if it is gone. */
  start(pid: number, tid: number): number | undefined;
}

/** Links that a directory without entries has: its name and its own `.`. */
const LINKS_OF_NONE = 2;

/** Threads as /proc shows them. */
export const procThreads: Threads = createProcThreads(MOST_THREADS);

/** @param most threads of a process that are listed */
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
