import { readdir, readFile } from 'node:fs/promises';
import { PlumblineError } from '../model/errors.ts';

/** A sysfs tree that lacks what a host cannot be described without; the message names the file. */
export class SysfsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('sysfs', message, options);
  }
}

/** A file's text, or undefined where there is none or the kernel says that it means nothing here. */
export async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw new SysfsError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** A number that names something; negative ones (sysfs says -1 for unknown) name nothing. */
export async function readId(file: string): Promise<number | undefined> {
  const text = (await readOptional(file))?.trim();
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}

/** The names in a directory that match; none where it is missing. */
export async function entries(directory: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => pattern.test(name));
  } catch (error) {
    if (isAbsent(error)) return [];
    throw new SysfsError(`${directory} cannot be listed: ${(error as Error).message}`, { cause: error });
  }
}

/** The NUMA nodes that sysfs has a directory of, ascending. */
export async function numaNodeIds(directory: string): Promise<number[]> {
  const names = await entries(directory, /^node\d+$/);
  return names.map((name) => Number(name.slice('node'.length))).sort((a, b) => a - b);
}

/** ENOENT and ENOTDIR; also ENODEV and EINVAL, with which some sysfs files answer a read when they mean nothing. */
function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['ENOENT', 'ENOTDIR', 'ENODEV', 'EINVAL'].includes(code);
}
