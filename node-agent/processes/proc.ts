import { statSync } from 'node:fs';
import { resultOrNone } from '../../model/json.ts';
import { readHead } from '../files/bounded-file.ts';

/** Maximum bytes of a command line to read: a process can make it as long as it likes. */
const LONGEST_COMMAND_LINE = 2048;
/** The kernel returns comm, stat and status as one record, which is shorter. */
const MAX_RECORD_BYTES = 4096;

/** Facts about processes from /proc. All functions return undefined for a process that has ended. */

/**
 * The name of a process (of its main thread). The process chooses it and may include blanks, brackets and line ends.
 */
export function commOf(pid: number): string | undefined {
  return nameIn(`/proc/${pid}/comm`);
}

export function threadNameOf(pid: number, tid: number): string | undefined {
  return nameIn(`/proc/${pid}/task/${tid}/comm`);
}

/** The kernel appends one line end; everything before it belongs to the name. */
function nameIn(file: string): string | undefined {
  const text = resultOrNone(() => readHead(file, MAX_RECORD_BYTES));
  return text?.endsWith('\n') === true ? text.slice(0, -1) : text;
}

/** The beginning of the current command line, with the arguments separated by blanks. */
export function commandLineOf(pid: number): string | undefined {
  return resultOrNone(() => readHead(`/proc/${pid}/cmdline`, LONGEST_COMMAND_LINE))
    ?.replaceAll('\0', ' ')
    .trim();
}

/**
 * When a thread started, in clock ticks since the machine's start. Together with its id it identifies a thread
 * permanently, since the kernel reuses ids. Without `tid`, it returns the start of the main thread, and so of the
 * process.
 *
 * Source: proc_pid_stat(5), fields 4 and 22; the name in field 2 may contain blanks and brackets.
 */
export function startOf(pid: number, tid = pid): number | undefined {
  return statFields(`/proc/${pid}/task/${tid}/stat`)?.[19];
}

export function parentOf(pid: number): number | undefined {
  return statFields(`/proc/${pid}/stat`)?.[1];
}

/**
 * A number that differs between two successive processes with the same id. It may change during a process's life: equal
 * numbers prove that it is the same process, different ones prove nothing.
 */
export function identityOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.ino;
}

/** The effective user of a process. The kernel escapes line ends in the name that precedes it. */
export function userOf(pid: number): string | undefined {
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
