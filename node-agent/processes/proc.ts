import { readdirSync, statSync } from 'node:fs';
import { readHead, readRecord } from '../files/bounded-file.ts';

/** Bytes of a command line that are read: it is as long as a process likes. */
const LONGEST_COMMAND_LINE = 2048;

/** What /proc says of whole processes. Everything here is undefined for a process that is gone. */

/** The name of a process (of its main thread), which the process chose: blanks, brackets and line ends may be in it. */
export function commOf(pid: number): string | undefined {
  return nameIn(`/proc/${pid}/comm`);
}

/** The name of a thread. */
export function threadNameOf(pid: number, tid: number): string | undefined {
  return nameIn(`/proc/${pid}/task/${tid}/comm`);
}

/** The kernel ends a name with one line end, and what is before that is the name's own. */
function nameIn(file: string): string | undefined {
  const text = unlessGone(() => readRecord(file));
  return text?.endsWith('\n') === true ? text.slice(0, -1) : text;
}

/** The beginning of the command line, as the process shows it now, its arguments separated by blanks. */
export function commandLineOf(pid: number): string | undefined {
  return unlessGone(() => readHead(`/proc/${pid}/cmdline`, LONGEST_COMMAND_LINE))
    ?.replaceAll('\0', ' ')
    .trim();
}

/**
 * When a thread was started, in clock ticks since the machine's start. With its id it names one thread for ever, where
 * the id alone is given out again. `tid` is the main thread's, that is the process's, unless given.
 *
 * Source: proc_pid_stat(5), fields 4 and 22; the name in field 2 may hold blanks and brackets.
 */
export function startOf(pid: number, tid = pid): number | undefined {
  return statFields(`/proc/${pid}/task/${tid}/stat`)?.[19];
}

export function parentOf(pid: number): number | undefined {
  return statFields(`/proc/${pid}/stat`)?.[1];
}

/**
 * A number that differs between two processes that had the same id one after the other. It may change during a
 * process's life, so that two equal numbers say more than two different ones.
 */
export function identityOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.ino;
}

/** Ids of all processes. */
export function processIds(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

/** The fields from the third (the state) on. */
function statFields(file: string): readonly number[] | undefined {
  const text = unlessGone(() => readRecord(file));
  return text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

function unlessGone(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
