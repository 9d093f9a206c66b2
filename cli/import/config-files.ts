import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConfigFile } from '../../model/nova-conf/nova-conf.ts';
import { readInput } from '../../runtime/input-file.ts';
import { usageError } from '../support/exit-status.ts';

/** Bytes of all files together. A nova.conf with every comment of the sample has less than half of it. */
export const LARGEST = 2 * 1024 * 1024;

/**
 * Reads files in the given order. A directory stands for its `*.conf` files in the order of their names, as in Nova's
 * `--config-dir`.
 * @throws CliError naming the file
 */
export async function readConfigFiles(paths: readonly string[]): Promise<ConfigFile[]> {
  const files: ConfigFile[] = [];
  let left = LARGEST;
  for (const path of paths) {
    const inside = await filesIn(path);
    if (inside?.length === 0) throw usageError(`there is no *.conf in the directory ${path}`);
    for (const name of inside ?? [path]) {
      const bytes = read(name);
      left -= bytes.length;
      if (left < 0) throw usageError(`${name}: the files have more than ${LARGEST} bytes together`);
      files.push({ name, text: decode(name, bytes) });
    }
  }
  return files;
}

async function filesIn(path: string): Promise<string[] | undefined> {
  try {
    const names = await readdir(path);
    return names
      .filter((name) => name.endsWith('.conf'))
      .sort()
      .map((name) => join(path, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw unreadable(path, error);
  }
}

function read(path: string): Buffer {
  try {
    return readInput(path, LARGEST);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function decode(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw usageError(`${path} is not UTF-8 text`, { cause: error });
  }
}

function unreadable(path: string, error: unknown): Error {
  return usageError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
}
