import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { watchDirectory } from '../watch-directory.ts';

/** Whether the enabler file is there and not empty. */
export function isEnabled(file: string): boolean {
  try {
    const found = statSync(file);
    return found.isFile() && found.size > 0;
  } catch {
    return false;
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
