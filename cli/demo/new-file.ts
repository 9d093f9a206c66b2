import { type FileHandle, lstat, open, rm } from 'node:fs/promises';
import { usageError } from '../support/exit-status.ts';

/** A file that did not exist before: nothing else is overwritten or removed. */
export interface NewFile {
  readonly path: string;
  write(content: Uint8Array): Promise<void>;
  /** Removes the file, unless another one has taken its place. */
  remove(): Promise<void>;
}

/**
 * Creates an empty file that only its owner can read.
 * @throws CliError if the path exists (a link included) or cannot be created
 */
export async function createNewFile(path: string): Promise<NewFile> {
  let file: FileHandle;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem = code === 'EEXIST' ? `${path} exists, and is not overwritten: name a new file` : message;
    throw usageError(problem);
  }
  const { dev, ino } = await file.stat();
  return {
    path,
    write: (content) => file.writeFile(content),
    async remove() {
      const current = await lstat(path).catch(() => undefined);
      if (current?.ino === ino && current.dev === dev) await rm(path);
      await file.close();
    },
  };
}
