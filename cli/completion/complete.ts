import { writeSync } from 'node:fs';
import type { Command } from 'commander';
import { printable } from '../../runtime/printable.ts';
import { candidatesFor, type Names } from './candidates.ts';

/**
 * Prints the candidates for the last word, one a line. If the cluster does not answer, prints nothing: a
 * completion must never print an error.
 * @param forKubectl ends with kubectl's directive for plugins: 4, no file names
 * @param createProgram makes the program with the subcommands loaded for which `isMeant` holds
 */
export async function complete(
  words: readonly string[],
  forKubectl: boolean,
  createProgram: (name: string, isMeant: (command: string) => boolean) => Promise<Command>,
): Promise<void> {
  // Loads only the command of these words: the names of the others are enough, and Tab must be fast.
  const meant = words.slice(0, -1).find((word) => !word.startsWith('-'));
  const program = await createProgram('plumbline', (command) => command === meant);
  // Most words need no cluster, and no time to load its client.
  const names: Names = async (kind, namespace) => {
    try {
      return await (await import('./cluster-names.ts')).namesOf(kind, namespace);
    } catch {
      return [];
    }
  };
  const candidates = (await candidatesFor(program, words, names)).filter(({ word }) => printable(word) === word);
  const lines = candidates.map(({ word, about }) =>
    about === '' ? word : `${word}\t${about.replaceAll(/\s+/g, ' ')}`,
  );
  print([...lines, ...(forKubectl ? [':4'] : [])].map((line) => `${line}\n`).join(''));
}

const STDOUT = 1;

/** Writes to the file descriptor, because the streams of Node.js take a twentieth of its start to load. */
function print(text: string): void {
  try {
    for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(STDOUT, rest));
  } catch {
    // The shell no longer reads.
  }
}
