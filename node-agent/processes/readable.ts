import { readdirSync, type Stats, statSync } from 'node:fs';
import { errorText, PlumblineError } from '../../model/errors.ts';
import { readHead } from '../files/bounded-file.ts';

/** A file of /proc or of a cgroup that exists and cannot be read now: no fact about its process follows. */
export class UnreadableError extends PlumblineError {
  constructor(path: string, cause: unknown) {
    const why = errorText(cause);
    super('unreadable', why.includes(path) ? why : `${path}: ${why}`, { cause });
  }
}

/** Error codes of a process that has ended, and of a cgroup that was removed. */
const ENDED: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'ENODEV']);

/** Undefined if the process has ended or the cgroup was removed. @throws UnreadableError for any other error */
export function ifPresent<T>(path: string, work: (path: string) => T): T | undefined {
  try {
    return work(path);
  } catch (error) {
    if (ENDED.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw new UnreadableError(path, error);
  }
}

/** The first bytes of a file. @throws UnreadableError */
export function readIfPresent(path: string, maxBytes: number): string | undefined {
  return ifPresent(path, () => readHead(path, maxBytes));
}

/** Without an exception for a missing file: that would cost ten times as much. @throws UnreadableError */
export function statIfPresent(path: string): Stats | undefined {
  return ifPresent(path, () => statSync(path, { throwIfNoEntry: false }));
}

/** The names of the directories in a directory. @throws UnreadableError */
export function directoriesIn(path: string): string[] {
  const entries = ifPresent(path, () => readdirSync(path, { withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** The result, or the last good value while a file cannot be read. */
export function unlessUnreadable<T>(work: () => T, lastGood: T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof UnreadableError) return lastGood;
    throw error;
  }
}
