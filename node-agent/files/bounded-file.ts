import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** A file that is larger than its content can need, or not a regular file. */
export class FileLimitError extends PlumblineError {
  constructor(path: string, why: string) {
    super('file-limit', `${path}: ${why}`);
  }
}

const MISSING: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** The result; undefined if a file or a directory on its path does not exist. @throws any other system error */
export function unlessMissing<T>(work: () => T, codes = MISSING): T | undefined {
  try {
    return work();
  } catch (error) {
    if (codes.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Opening a pipe without a writer, or a device, must not block the process. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
const CHUNK_BYTES = 64 * 1024;

/** The file may grow while it is read. @param most bytes @throws FileLimitError, or a system error */
export function readBounded(path: string, most: number): string {
  return readBoundedBytes(path, most).toString('utf8');
}

export function readBoundedBytes(path: string, most: number): Buffer {
  const file = openSync(path, FLAGS);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new FileLimitError(path, 'not a regular file');
    const tooLarge = () => new FileLimitError(path, `larger than ${most} bytes`);
    if (stats.size > most) throw tooLarge();
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const count = readSync(file, chunk, 0, CHUNK_BYTES, null);
      if (count === 0) return Buffer.concat(chunks);
      length += count;
      if (length > most) throw tooLarge();
      chunks.push(chunk.subarray(0, count));
    }
  } finally {
    closeSync(file);
  }
}

/** The first bytes: a process chooses the length of its own entries in /proc. @throws a system error */
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

/** The format of the agent's own files that this build writes and reads. Additional fields do not change it. */
const FORMAT = 1;
const formatted = z.object({ format: z.number().default(FORMAT) });

/** A file that another version of the agent wrote in an unknown format. */
export class SavedFormatError extends PlumblineError {
  constructor(format: number) {
    super('saved-format', `it has format ${format}, this agent reads format ${FORMAT}: a later version has written it`);
  }
}

/** In one step; creates the directory. Without `flush` it does not survive the machine. @throws a system error */
export function saveFile(path: string, content: string | Buffer, { mode = 0o600, flush = false } = {}): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  // The name has no extension that a container runtime looks for.
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  try {
    writeFileSync(temporary, content, { mode, flag: 'wx', flush });
    chmodSync(temporary, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** @throws SavedFormatError @throws Error if it is not one of the agent's own files */
export function parseSaved<S extends z.ZodType>(text: string, schema: S): z.output<S> {
  const value: unknown = JSON.parse(text);
  const { format } = formatted.parse(value);
  if (format !== FORMAT) throw new SavedFormatError(format);
  return schema.parse(value);
}

/** The same, for a value that has no meaning after a reboot: undefined if another boot's agent saved it. */
export function parseSavedInBoot<S extends z.ZodType<{ readonly bootId: string }>>(
  text: string,
  schema: S,
  bootId: string,
): z.output<S> | undefined {
  const saved = parseSaved(text, schema);
  return saved.bootId === bootId ? saved : undefined;
}
