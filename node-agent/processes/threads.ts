import { readdirSync, readFileSync, statSync } from 'node:fs';
import { startOf } from './proc.ts';

/** The threads of processes, as far as those who keep them need to know. */
export interface Threads {
  /** Thread ids of a process, the main thread's included; empty if it is gone. */
  list(pid: number): number[];
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
export const procThreads: Threads = {
  list(pid) {
    try {
      return readdirSync(`/proc/${pid}/task`).map(Number);
    } catch {
      return [];
    }
  },
  glance(pid) {
    // The kernel adds the number of threads to the links of this directory (proc_task_getattr in fs/proc/base.c).
    const found = statSync(`/proc/${pid}/task`, { throwIfNoEntry: false });
    return { count: (found?.nlink ?? LINKS_OF_NONE) - LINKS_OF_NONE, identity: found?.ino ?? 0 };
  },
  name(pid, tid) {
    try {
      return readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trimEnd();
    } catch {
      return undefined;
    }
  },
  start: startOf,
};
