import { readdir, readFile } from 'node:fs/promises';
import { PlumblineError } from '../model/errors.ts';

/** A sysfs tree without a file that is required to describe a host; the message names the file. */
export class SysfsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('sysfs', message, options);
  }
}

/** The text of a file, or undefined if it is missing or does not apply to this hardware. */
export async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw new SysfsError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** An id in a file. Negative numbers mean unknown in sysfs and result in undefined. */
export async function readId(file: string): Promise<number | undefined> {
  const text = (await readOptional(file))?.trim();
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}

/** A whole number at the start of a file, as Go's Sscanf reads it. Undefined if the file is missing or has none. */
export async function readNumber(file: string): Promise<number | undefined> {
  const digits = /^\s*([+-]?\d+)/.exec((await readOptional(file)) ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The matching names in a directory; empty if it is missing. */
export async function entries(directory: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => pattern.test(name));
  } catch (error) {
    if (isAbsent(error)) return [];
    throw new SysfsError(`${directory} cannot be listed: ${(error as Error).message}`, { cause: error });
  }
}

/** The NUMA nodes with a directory in sysfs, ascending. */
export async function numaNodeIds(directory: string): Promise<number[]> {
  const names = await entries(directory, /^node\d+$/);
  return names.map((name) => Number(name.slice('node'.length))).sort((a, b) => a - b);
}

/**
 * Whether a file is absent: ENOENT and ENOTDIR; also ENODEV and EINVAL, which some sysfs files return if they do not
 * apply.
 */
function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['ENOENT', 'ENOTDIR', 'ENODEV', 'EINVAL'].includes(code);
}
