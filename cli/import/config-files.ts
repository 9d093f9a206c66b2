import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConfigFile } from '../../model/nova-conf/oslo-config.ts';
import { usageError } from '../support/exit-status.ts';

/** Bytes. A nova.conf with every comment of the sample has a tenth of it. */
const LARGEST = 8 * 1024 * 1024;

/**
 * Reads files in the given order. A directory stands for its `*.conf` files in the order of their names, as in Nova's
 * `--config-dir`.
 * @throws CliError naming the file
 */
export async function readConfigFiles(paths: readonly string[]): Promise<ConfigFile[]> {
  const files: ConfigFile[] = [];
  for (const path of paths) {
    const inside = await filesIn(path);
    if (inside?.length === 0) throw usageError(`there is no *.conf in the directory ${path}`);
    for (const name of inside ?? [path]) files.push({ name, text: await read(name) });
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

async function read(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (bytes.length > LARGEST) throw usageError(`${path} has ${bytes.length} bytes: too large for a configuration file`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw usageError(`${path} is not UTF-8 text`, { cause: error });
  }
}

function unreadable(path: string, error: unknown): Error {
  return usageError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
}
