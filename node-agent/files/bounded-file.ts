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
/** Bytes of the first read of a file that does not report its length, as in /proc and sysfs. */
const UNSIZED = 4096;

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
    let buffer: Buffer = Buffer.allocUnsafe(sizeFor(path, fstatSync(file), most));
    for (let length = 0; ; ) {
      const count = readSync(file, buffer, length, buffer.length - length, null);
      length += count;
      if (length > most) throw tooLarge(path, most);
      if (count === 0) return buffer.subarray(0, length);
      if (length === buffer.length) buffer = grown(buffer, most);
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

/** Shared by all calls, since they are synchronous. */
const RECORD = Buffer.allocUnsafe(UNSIZED);

/**
 * Reads the first 4096 bytes of a file that the kernel returns as one record, such as comm and stat in /proc: one read
 * returns all of it.
 *
 * @throws a system error
 */
export function readRecord(path: string): string {
  const file = openSync(path, FLAGS);
  try {
    return RECORD.toString('utf8', 0, readSync(file, RECORD, 0, RECORD.length, null));
  } finally {
    closeSync(file);
  }
}

/** `readBounded` without blocking the event loop. */
export async function readBoundedAsync(path: string, most: number): Promise<string> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, FLAGS);
    let buffer: Buffer = Buffer.allocUnsafe(sizeFor(path, await file.stat(), most));
    for (let length = 0; ; ) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
      length += bytesRead;
      if (length > most) throw tooLarge(path, most);
      if (bytesRead === 0) return buffer.toString('utf8', 0, length);
      if (length === buffer.length) buffer = grown(buffer, most);
    }
  } finally {
    await file?.close();
  }
}

/** One byte more than the file has, so that the second read finds its end. */
function sizeFor(path: string, stats: Stats, most: number): number {
  if (!stats.isFile()) throw new FileLimitError(path, 'not a regular file');
  if (stats.size > most) throw tooLarge(path, most);
  return (stats.size || Math.min(UNSIZED, most)) + 1;
}

function grown(buffer: Buffer, most: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(buffer.length * 2, most + 1));
  buffer.copy(larger);
  return larger;
}

function tooLarge(path: string, most: number): FileLimitError {
  return new FileLimitError(path, `larger than ${most} bytes`);
}
