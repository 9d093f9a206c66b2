import { intervalSeconds, Subcommand } from '../support/command.ts';
import type { TopFlags } from './run.ts';

const REFRESH_SECONDS = 2;

const EXAMPLES = `
Examples:
  plumbline top                    # every node in a few lines; live on a terminal: Ctrl-C ends it
  plumbline top --once             # once, also on a terminal
  plumbline top worker-1           # one node, every CPU by number
  plumbline top --watch 10         # refresh every 10 seconds instead of ${REFRESH_SECONDS}
  plumbline top -o json

A live map is cut to the screen; --once prints all of it.
Output has colour only on a terminal and without NO_COLOR; the letters carry the same information.`;

export const createCommand = () =>
  new Subcommand(
    'top',
    'Show nodes as maps of their CPUs: NUMA nodes, cores and threads, and the owner of each.',
    EXAMPLES,
  )
    .argument('[nodes...]', 'show these nodes, each CPU by number; default: all nodes, in short form')
    .option('-w, --watch [seconds]', `refresh interval; default on a terminal: ${REFRESH_SECONDS}`, intervalSeconds)
    .option('--once', 'print once, also on a terminal')
    .withCluster()
    .withOutput('json', 'yaml', 'wide', 'name')
    .action(async (nodes: readonly string[], flags: TopFlags) =>
      (await import('./run.ts')).run(nodes, flags, REFRESH_SECONDS),
    );
