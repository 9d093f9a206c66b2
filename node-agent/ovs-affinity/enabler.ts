import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { watchDirectory } from '../files/watch-directory.ts';

/** Error codes of a missing file. With any other error, the state of the file is unknown. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** Whether the enabler file exists and is not empty; undefined if that cannot be determined now (EIO, EACCES, …). */
export function isEnabled(file: string): boolean | undefined {
  try {
    const found = statSync(file);
    return found.isFile() && found.size > 0;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return ABSENT.has(code) ? false : undefined;
  }
}

/** Calls `onChange` whenever the file may have been created, filled, emptied, replaced or removed. */
export function watchEnabler(file: string, onChange: () => void, signal: AbortSignal): void {
  watchDirectory({
    path: dirname(file),
    signal,
    onChange: (name) => {
      if (name === undefined || name === basename(file)) onChange();
    },
  });
}
