import { readFileSync, statSync } from 'node:fs';

/** What /proc tells of whole processes. Everything here is undefined for a process that is gone. */

/** The name of a process (of its main thread). */
export function commOf(pid: number): string | undefined {
  return read(`/proc/${pid}/comm`)?.trimEnd();
}

/** The command line, as the process shows it now, its arguments separated by blanks. */
export function commandLineOf(pid: number): string | undefined {
  return read(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim();
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

/** The kernel's name for the time since the machine's last start. */
export function bootId(): string {
  return read('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
}

/** The fields from the third (the state) on. */
function statFields(file: string): readonly number[] | undefined {
  const text = read(file);
  return text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
