import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { type OutputFormat, print } from '../support/output.ts';
import type { Line, Terminal } from '../support/terminal.ts';
import { nodeLines, topLines } from './lines.ts';
import { viewData } from './node-view.ts';
import { readTop, type TopView } from './read.ts';
import { isWatchable, watch } from './watch.ts';

export interface TopFlags extends ClusterFlags {
  readonly output?: OutputFormat;
  /** Seconds, or true for the default. */
  readonly watch?: number | true;
  readonly once?: true;
}

/**
 * Draws maps of these nodes, or of all: once, or until it is interrupted.
 * @param usualPace seconds between two drawings without a number in the flags
 * @throws CliError, KubeError
 */
export function run(nodes: readonly string[], flags: TopFlags, usualPace: number): Promise<void> {
  const pace = typeof flags.watch === 'number' ? flags.watch : usualPace;
  return usingCluster(flags, ({ client }) => draw(client, nodes, flags, pace));
}

async function draw(client: KubeClient, nodes: readonly string[], flags: TopFlags, pace: number): Promise<void> {
  const isLive = isWatchable() && flags.output === undefined;
  if (flags.once || (flags.watch === undefined && !isLive)) {
    return show(await readTop(client, nodes, Date.now()), nodes, flags.output);
  }
  if (flags.output !== undefined && flags.output !== 'wide') {
    return repeat(async () => show(await readTop(client, nodes, Date.now()), nodes, flags.output), pace);
  }
  const read = async () => {
    const view = await readTop(client, nodes, Date.now());
    return (terminal: Terminal) => linesOf(view, nodes, terminal, flags.output === 'wide');
  };
  await untilInterrupted((signal) => watch(read, { seconds: pace, signal }));
}

function linesOf(view: TopView, nodes: readonly string[], terminal: Terminal, wide = false): Line[] {
  if (nodes.length === 0) return topLines(view, terminal, wide);
  return [...view.nodes.flatMap((node, i) => [...(i > 0 ? [''] : []), ...nodeLines(node, terminal)]), ...view.notes];
}

function show(view: TopView, nodes: readonly string[], output: OutputFormat | undefined): Promise<void> {
  const data = { nodes: view.nodes.map(viewData), notes: view.notes };
  return print(output, data, {
    text: (terminal) => linesOf(view, nodes, terminal),
    wide: (terminal) => linesOf(view, nodes, terminal, true),
    name: () => view.nodes.map(({ name }) => `node/${name}`),
  });
}

/** Data is printed one document after the other. */
function repeat(once: () => Promise<void>, pace: number): Promise<void> {
  return untilInterrupted(async (signal) => {
    while (!signal.aborted) {
      await once();
      await delay(pace * 1000, undefined, { signal }).catch(() => undefined);
    }
  });
}

/** Ctrl-C is the normal end of a watch, not a failure. */
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
