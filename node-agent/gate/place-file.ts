import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readBoundedBytes } from '../files/bounded-file.ts';

/** The content of a file; undefined if it cannot be read, is not a regular file or has more than `most` bytes. */
export function contentOf(path: string, most: number): Buffer | undefined {
  try {
    return readBoundedBytes(path, most);
  } catch {
    return undefined;
  }
}

/**
 * Writes a file in one step, unless the existing one is identical: a runtime may be reading or executing it.
 *
 * @returns whether anything was written
 * @throws a system error
 */
export function placeFile(path: string, content: Buffer, mode: number): boolean {
  if (contentOf(path, content.length)?.equals(content)) return false;
  const directory = dirname(path);
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  // The name has no extension that a runtime looks for.
  const temporary = join(directory, `.plumbline-${process.pid}.tmp`);
  try {
    writeFileSync(temporary, content, { mode });
    chmodSync(temporary, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  return true;
}

/** Removes a file. @returns whether it existed @throws a system error */
export function removeFile(path: string): boolean {
  if (!existsSync(path)) return false;
  rmSync(path, { force: true });
  return true;
}
