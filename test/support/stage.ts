import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Registers what ends a part of a stage. */
export type Undo = (end: () => unknown) => void;

/**
 * Builds a stage around a folder of its own. What it registered ends, the last first, when it stops or cannot be built.
 * @param prefix of the folder's name. Short, if unix sockets are below it: their paths may have at most 107 bytes.
 */
export async function buildStage<T extends object>(
  prefix: string,
  build: (directory: string, undo: Undo) => Promise<T>,
): Promise<T & { stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  const ends: (() => unknown)[] = [() => rmSync(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  };
  try {
    return Object.assign(await build(directory, (end) => void ends.push(end)), { stop });
  } catch (error) {
    await stop();
    throw error;
  }
}
