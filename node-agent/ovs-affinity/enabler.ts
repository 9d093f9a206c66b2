import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { watchDirectory } from '../files/watch-directory.ts';

/** What the system says of a file that is not there; any other error says nothing about it. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** Whether the enabler file is there and not empty; undefined where that cannot be seen now (EIO, EACCES, …). */
export function isEnabled(file: string): boolean | undefined {
  try {
    const found = statSync(file);
    return found.isFile() && found.size > 0;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return ABSENT.has(code) ? false : undefined;
  }
}

/** Calls `onChange` whenever the file may have been made, filled, emptied, replaced or removed. */
export function watchEnabler(file: string, onChange: () => void, signal: AbortSignal): void {
  watchDirectory({
    path: dirname(file),
    signal,
    onChange: (name) => {
      if (name === undefined || name === basename(file)) onChange();
    },
  });
}
