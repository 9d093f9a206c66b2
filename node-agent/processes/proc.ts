import { opendirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { CpuSet } from '../../model/cpu-set.ts';
import { resultOrNone } from '../../model/json.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { isThreadOf } from '../../native/peer.ts';
import { readHead } from '../files/bounded-file.ts';

/** Maximum bytes of a command line to read: a process can make it as long as it likes. */
const MAX_COMMAND_LINE_CHARACTERS = 2048;
/** The kernel returns comm, stat and status as one record, which is shorter. */
const MAX_RECORD_BYTES = 4096;

/** Facts about processes from /proc. All functions return undefined for a process that has ended. */

/** A process chooses its name, which may include blanks, brackets and line ends. */
export function commOf(pid: number): string | undefined {
  return nameIn(`/proc/${pid}/comm`);
}

/** The kernel appends one line end; everything before it belongs to the name. */
function nameIn(file: string): string | undefined {
  const text = resultOrNone(() => readHead(file, MAX_RECORD_BYTES));
  return text?.endsWith('\n') === true ? text.slice(0, -1) : text;
}

export function commandLineOf(pid: number): string | undefined {
  return resultOrNone(() => readHead(`/proc/${pid}/cmdline`, MAX_COMMAND_LINE_CHARACTERS))
    ?.replaceAll('\0', ' ')
    .trim();
}

/**
 * Clock ticks since the machine's start. Together with its id it identifies a thread permanently. Source:
 * proc_pid_stat(5), fields 4 and 22; the name in field 2 may contain blanks and brackets.
 */
export function startOf(pid: number, tid = pid): number | undefined {
  return statFields(`/proc/${pid}/task/${tid}/stat`)?.[19];
}

export function parentOf(pid: number): number | undefined {
  return statFields(`/proc/${pid}/stat`)?.[1];
}

/** Equal numbers prove that it is the same process; different ones prove nothing. */
export function identityOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.ino;
}

/** The effective user of a process. The kernel escapes line ends in the name that precedes it. */
export function processUserOf(pid: number): string | undefined {
  return /^Uid:\t\d+\t(\d+)/m.exec(resultOrNone(() => readHead(`/proc/${pid}/status`, MAX_RECORD_BYTES)) ?? '')?.[1];
}

/** The fields starting with the third (the state). */
function statFields(file: string): readonly number[] | undefined {
  const text = resultOrNone(() => readHead(file, MAX_RECORD_BYTES));
  return text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

/** Seconds of CLOCK_MONOTONIC, which all processes share: one can continue another's observation. */
export function machineSeconds(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1e6;
}

/** Distinguishes one boot of the machine from the next; empty if the kernel does not report an id. */
export function bootId(): string {
  return resultOrNone(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? '';
}

/** Maximum threads of a process to list, oldest first: a process can start any number. */
const MAX_THREADS = 4096;

/** Link count of a directory without entries: its name and its own `.`. */
const LINKS_OF_NONE = 2;

export type Threads = ReturnType<typeof createProcThreads>;

export const procThreads = createProcThreads(MAX_THREADS);

/** @param most maximum threads of a process to list */
export function createProcThreads(most: number) {
  const summary = (pid: number) => {
    // The kernel adds the number of threads to the links of this directory (proc_task_getattr in fs/proc/base.c).
    const stats = statSync(`/proc/${pid}/task`, { throwIfNoEntry: false });
    return { count: (stats?.nlink ?? LINKS_OF_NONE) - LINKS_OF_NONE, identity: stats?.ino ?? 0 };
  };
  return {
    /** Thread ids of a process, including the main thread; empty if it has ended. */
    list(pid: number): number[] {
      const directory = `/proc/${pid}/task`;
      try {
        return (summary(pid).count <= most ? readdirSync(directory) : firstEntries(directory, most)).map(Number);
      } catch {
        return [];
      }
    },
    /** The number of threads, and a number that differs for another process with the same id. One system call. */
    summary,
    has: isThreadOf,
    name: (pid: number, tid: number) => nameIn(`/proc/${pid}/task/${tid}/comm`),
    start: (pid: number, tid: number) => startOf(pid, tid),
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
export function allowedOf(affinity: ThreadAffinity, tid: number): CpuSet | undefined {
  try {
    return CpuSet.fromWords(affinity.get(tid));
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
