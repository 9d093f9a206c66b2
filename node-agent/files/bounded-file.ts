import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { PlumblineError } from '../../model/errors.ts';

/** A file that is larger than what it holds could ever need, or that is no regular file. */
export class FileLimitError extends PlumblineError {
  constructor(path: string, why: string) {
    super('file-limit', `${path}: ${why}`);
  }
}

/** Opening a pipe that nothing writes to, or a device, must not hold the process up. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
/** Bytes of a first read where the file does not say how long it is, as in /proc and sysfs. */
const UNSIZED = 4096;

/**
 * Reads a file that others write. Its size is looked at before any of it is read, and again as it is read: it may grow.
 * @param most bytes
 * @throws FileLimitError if it is larger, or no regular file
 * @throws the system's error
 */
export function readBounded(path: string, most: number): string {
  return readBoundedBytes(path, most).toString('utf8');
}

/** The same as bytes. */
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
 * The first bytes of a file, where the rest decides nothing: a process chooses how long its own entries in /proc are.
 * @throws the system's error
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

/** Nothing here is asynchronous, so one buffer serves every call. */
const RECORD = Buffer.allocUnsafe(UNSIZED);

/**
 * The first 4096 bytes of a file that the kernel shows as one record, as comm and stat in /proc: one read has all of it.
 * @throws the system's error
 */
export function readRecord(path: string): string {
  const file = openSync(path, FLAGS);
  try {
    return RECORD.toString('utf8', 0, readSync(file, RECORD, 0, RECORD.length, null));
  } finally {
    closeSync(file);
  }
}

/** The same as `readBounded` without holding up the event loop. */
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

/** One byte more than the file has, so that its end shows in the second read. */
function sizeFor(path: string, stats: Stats, most: number): number {
  if (!stats.isFile()) throw new FileLimitError(path, 'no regular file');
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
