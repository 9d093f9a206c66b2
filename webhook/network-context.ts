import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { type ConfiguredContext, parseConfiguredContext } from '../model/networks/context-file.ts';
import { ConfigError } from '../runtime/config.ts';

/**
 * Reads the file in --network-context; without the flag the context is empty.
 * @throws ConfigError naming the file, if it cannot be read or is malformed
 */
export async function readNetworkContext(path: string | undefined): Promise<ConfiguredContext> {
  if (path === undefined) return parseConfiguredContext(undefined);
  try {
    return parseConfiguredContext(parse(await readFile(path, 'utf8')));
  } catch (error) {
    throw new ConfigError(`--network-context ${path}: ${(error as Error).message}`);
  }
}
