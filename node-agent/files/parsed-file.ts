import { type Stats, statSync } from 'node:fs';
import { readBoundedAsync } from './bounded-file.ts';

/**
 * Milliseconds. A file that changed this shortly before it was read is read again: the kernel's time stamps are coarse,
 * and a second change could have the same one.
 */
const RECENT = 1000;

/** Reads and parses a file. It may return the same value again, which callers must not change. */
export type ReadParsed = (file: string) => Promise<unknown>;

/**
 * Creates a reader that parses a file again only after it has changed: at other times a read costs one system call.
 *
 * @param most bytes
 * @param wallClock milliseconds since the epoch
 */
export function createParsedFiles(
  parse: (file: string, text: string) => unknown,
  most: number,
  wallClock: () => number = Date.now,
): ReadParsed {
  const known = new Map<string, { readonly stats: Stats; readonly value: unknown }>();
  return async (file) => {
    const before = known.get(file);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (before !== undefined && stats !== undefined && isSame(before.stats, stats)) return before.value;
    known.delete(file);
    const begun = wallClock();
    const value = parse(file, await readBoundedAsync(file, most));
    if (stats !== undefined && begun - stats.ctimeMs > RECENT) known.set(file, { stats, value });
    return value;
  };
}

function isSame(a: Stats, b: Stats): boolean {
  return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
}
