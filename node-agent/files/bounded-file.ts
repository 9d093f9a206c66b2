import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { PlumblineError } from '../../model/errors.ts';

/** A file that is larger than its content can need, or not a regular file. */
export class FileLimitError extends PlumblineError {
  constructor(path: string, why: string) {
    super('file-limit', `${path}: ${why}`);
  }
}

/** Opening a pipe without a writer, or a device, must not block the process. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
/** Bytes of one read. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Reads a file that other programs write. It checks the size before and while it reads, since the file may grow.
 *
 * @param most bytes
 * @throws FileLimitError if it is larger, or not a regular file
 * @throws a system error
 */
export function readBounded(path: string, most: number): string {
  return readBoundedBytes(path, most).toString('utf8');
}

/** `readBounded` as bytes. */
export function readBoundedBytes(path: string, most: number): Buffer {
  const file = openSync(path, FLAGS);
  try {
    assertBounded(path, fstatSync(file), most);
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const count = readSync(file, chunk, 0, CHUNK_BYTES, null);
      if (count === 0) return Buffer.concat(chunks);
      length += count;
      if (length > most) throw tooLarge(path, most);
      chunks.push(chunk.subarray(0, count));
    }
  } finally {
    closeSync(file);
  }
}

/**
 * Reads the first bytes of a file whose rest does not matter: a process chooses the length of its own entries in /proc.
 *
 * @throws a system error
 */
export function readHead(path: string, most: number): string {
  const file = openSync(path, FLAGS);
  try {
    const buffer = Buffer.allocUnsafe(most);
    let length = 0;
    for (let count = -1; count !== 0 && length < most; length += count) {
      count = readSync(file, buffer, length, most - length, null);
    }
    return buffer.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}

/** `readBounded` without blocking the event loop. */
export async function readBoundedAsync(path: string, most: number): Promise<string> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, FLAGS);
    assertBounded(path, await file.stat(), most);
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return Buffer.concat(chunks).toString('utf8');
      length += bytesRead;
      if (length > most) throw tooLarge(path, most);
      chunks.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file?.close();
  }
}

/** @throws FileLimitError */
function assertBounded(path: string, stats: Stats, most: number): void {
  if (!stats.isFile()) throw new FileLimitError(path, 'not a regular file');
  if (stats.size > most) throw tooLarge(path, most);
}

function tooLarge(path: string, most: number): FileLimitError {
  return new FileLimitError(path, `larger than ${most} bytes`);
}
