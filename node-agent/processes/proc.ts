import { opendirSync, readdirSync, readFileSync } from 'node:fs';
import { CpuSet } from '../../model/cpu-set.ts';
import { resultOrNone } from '../../model/json.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { isThreadOf } from '../../native/peer.ts';
import { readBounded } from '../files/bounded-file.ts';
import { ifPresent, readIfPresent, statIfPresent, UnreadableError } from './readable.ts';

/** Maximum bytes of a command line to read: a process can make it as long as it likes. */
const MAX_COMMAND_LINE_CHARACTERS = 2048;
/** The kernel returns comm, stat and status as one record, which is shorter. */
const MAX_RECORD_BYTES = 4096;

/**
 * Facts about processes from /proc. All functions return undefined for a process that has ended, and throw
 * UnreadableError if that is unknown.
 */

/** A process chooses its name, which may include blanks, brackets and line ends. */
export function commOf(pid: number): string | undefined {
  return nameIn(`/proc/${pid}/comm`);
}

/** The kernel appends one line end; everything before it belongs to the name. */
function nameIn(file: string): string | undefined {
  const text = readIfPresent(file, MAX_RECORD_BYTES);
  return text?.endsWith('\n') === true ? text.slice(0, -1) : text;
}

export function commandLineOf(pid: number): string | undefined {
  return readIfPresent(`/proc/${pid}/cmdline`, MAX_COMMAND_LINE_CHARACTERS)?.replaceAll('\0', ' ').trim();
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
  return statIfPresent(`/proc/${pid}`)?.ino;
}

/** Whether it is certain that the process with this start has ended. @param startOf may throw UnreadableError */
export function hasEnded(
  { pid, start }: { readonly pid: number; readonly start: number },
  startOf: (pid: number) => number | undefined,
): boolean {
  try {
    return startOf(pid) !== start;
  } catch (error) {
    if (error instanceof UnreadableError) return false;
    throw error;
  }
}

/** The effective user of a process. The kernel escapes line ends in the name that precedes it. */
export function processUserOf(pid: number): string | undefined {
  return /^Uid:\t\d+\t(\d+)/m.exec(readIfPresent(`/proc/${pid}/status`, MAX_RECORD_BYTES) ?? '')?.[1];
}

/** The fields starting with the third (the state). */
function statFields(file: string): readonly number[] | undefined {
  const text = readIfPresent(file, MAX_RECORD_BYTES);
  // A process that ends meanwhile leaves an empty record.
  if (text === undefined || text === '') return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.map(Number);
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

/** The threads of processes, read from /proc at each call. */
export class ProcThreads {
  readonly #maxThreads: number;

  /** @param maxThreads of a process to list */
  constructor(maxThreads: number) {
    this.#maxThreads = maxThreads;
  }

  /** Thread ids of a process, including the main thread; empty if it has ended. @throws UnreadableError */
  list(pid: number): number[] {
    const isWhole = this.summary(pid).count <= this.#maxThreads;
    const list = (path: string) => (isWhole ? readdirSync(path) : firstEntries(path, this.#maxThreads));
    return (ifPresent(`/proc/${pid}/task`, list) ?? []).map(Number);
  }

  /**
   * The number of threads, and a number that differs for another process with the same id. One system call.
   * @throws UnreadableError
   */
  summary(pid: number) {
    // The kernel adds the number of threads to the links of this directory (proc_task_getattr in fs/proc/base.c).
    const stats = statIfPresent(`/proc/${pid}/task`);
    return { count: (stats?.nlink ?? LINKS_OF_NONE) - LINKS_OF_NONE, identity: stats?.ino ?? 0 };
  }

  readonly has = isThreadOf;
  /** @throws UnreadableError */
  readonly start: (pid: number, tid: number) => number | undefined = startOf;

  /** @throws UnreadableError */
  name(pid: number, tid: number): string | undefined {
    return nameIn(`/proc/${pid}/task/${tid}/comm`);
  }
}

export type Threads = Pick<ProcThreads, keyof ProcThreads>;

export const procThreads = new ProcThreads(MAX_THREADS);

/** Of the machine that this process runs on: the kernel knows only these, whatever host the flags describe. */
const MACHINE_ONLINE = '/sys/devices/system/cpu/online';
const MAX_LIST_BYTES = 32 * 1024;

/**
 * The online CPUs of this machine. Owner: the kernel. Age: read at each call; while that fails, the last good value.
 * End: with this process.
 */
export class OnlineCpus {
  #last = CpuSet.EMPTY;

  readonly read = (): CpuSet => {
    this.#last = resultOrNone(() => CpuSet.parse(readBounded(MACHINE_ONLINE, MAX_LIST_BYTES))) ?? this.#last;
    return this.#last;
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
