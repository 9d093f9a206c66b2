import { Command, InvalidArgumentError } from 'commander';
import type { KubeClient } from '../../kube/client.ts';
import { type ClusterFlags, usingCluster, withCluster } from '../support/cluster.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { terminalOf } from '../support/terminal.ts';
import { nodeLines, topLines } from './lines.ts';
import { viewData } from './node-view.ts';
import { readTop, type TopView } from './read.ts';
import { watch } from './watch.ts';

interface TopFlags extends ClusterFlags {
  readonly output?: OutputFormat;
  /** Seconds, or true for the default. */
  readonly watch?: number | true;
}

/** Seconds between two drawings. */
const PACE = 2;

const EXAMPLES = `
Examples:
  plumbline top                    # every node in a few lines
  plumbline top worker-1           # one node, every CPU by its number
  plumbline top --watch            # drawn anew every ${PACE} seconds; Ctrl-C ends it
  plumbline top -o json

Colour only on a terminal and without NO_COLOR; every letter is readable without it.`;

/** `plumbline top` */
export function topCommand(): Command {
  const command = new Command('top')
    .description('Draws nodes as maps of their CPUs: NUMA nodes, cores, threads side by side, and who owns which.')
    .argument('[nodes...]', 'these nodes, each CPU by its number; default: all, in short')
    .option('-w, --watch [seconds]', 'draw anew every so many seconds', seconds)
    .addHelpText('after', EXAMPLES)
    .action((nodes: readonly string[], flags: TopFlags) =>
      usingCluster(flags, ({ client }) => run(client, nodes, flags)),
    );
  return withOutput(withCluster(command), ['json', 'yaml', 'wide', 'name']);
}

async function run(client: KubeClient, nodes: readonly string[], flags: TopFlags): Promise<void> {
  if (flags.watch === undefined) return show(await readTop(client, nodes, Date.now()), nodes, flags.output);
  const pace = flags.watch === true ? PACE : flags.watch;
  if (flags.output !== undefined && flags.output !== 'wide') {
    return repeat(async () => show(await readTop(client, nodes, Date.now()), nodes, flags.output), pace);
  }
  const draw = async () => linesOf(await readTop(client, nodes, Date.now()), nodes, flags.output === 'wide');
  await untilInterrupted((signal) => watch(draw, pace, process.stdout, signal));
}

function linesOf(view: TopView, nodes: readonly string[], wide: boolean): string[] {
  const terminal = terminalOf(process.stdout);
  if (nodes.length === 0) return topLines(view, terminal, wide);
  return [...view.nodes.flatMap((node, i) => [...(i > 0 ? [''] : []), ...nodeLines(node, terminal)]), ...view.notes];
}

function show(view: TopView, nodes: readonly string[], output: OutputFormat | undefined): Promise<void> {
  const data = { nodes: view.nodes.map(viewData), notes: view.notes };
  return print(output, data, {
    text: () => linesOf(view, nodes, false),
    wide: () => linesOf(view, nodes, true),
    name: () => view.nodes.map(({ name }) => `node/${name}`),
  });
}

/** Data is printed one document after the other. */
function repeat(once: () => Promise<void>, pace: number): Promise<void> {
  return untilInterrupted(async (signal) => {
    while (!signal.aborted) {
      await once();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pace * 1000);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  });
}

/** Ctrl-C is how one leaves a watch, so it is no failure. */
async function untilInterrupted(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    await run(controller.signal);
  } finally {
    process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
  }
}

function seconds(text: string): number {
  const value = Number(text);
  if (!(value >= 0.2 && value <= 3600))
    throw new InvalidArgumentError('expected 0.2 to 3600 seconds; names of nodes stand before --watch');
  return value;
}
