import type { Command } from 'commander';
import * as z from 'zod';
import { objectMeta } from '../../kube/resources.ts';
import { usingCluster } from '../support/cluster.ts';
import { NODE_TOPOLOGIES_PATH, readAll } from '../support/lists.ts';
import { candidatesFor, type Names } from './candidates.ts';

const named = z.object({ metadata: objectMeta });
/** Seconds: the user who presses Tab does not wait longer. */
const PATIENCE = 2;

const PATHS = {
  vm: (namespace: string) => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`,
  pod: (namespace: string) => `/api/v1/namespaces/${namespace}/pods`,
  node: () => NODE_TOPOLOGIES_PATH,
} as const;

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
  const names: Names = async (kind, namespace) => {
    try {
      const flags = { requestTimeout: PATIENCE, ...(namespace !== undefined && { namespace }) };
      return await usingCluster(flags, async ({ client, namespace: own }) => {
        const found = await readAll(client, PATHS[kind](own), named);
        return found.map(({ metadata }) => metadata.name ?? '');
      });
    } catch {
      return [];
    }
  };
  const found = await candidatesFor(program, words, names);
  const lines = found.map(({ word, about }) => (about === '' ? word : `${word}\t${about.replaceAll(/\s+/g, ' ')}`));
  process.stdout.write([...lines, ...(forKubectl ? [':4'] : [])].map((line) => `${line}\n`).join(''));
}
