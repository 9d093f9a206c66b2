import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { type OutputFormat, print } from '../support/output.ts';
import type { Line, Terminal } from '../support/terminal.ts';
import { showRepeatedly } from '../support/watch.ts';
import { nodeLines, topLines } from './map.ts';
import { readTop, type TopView } from './read.ts';
import { viewData } from './view.ts';

export interface TopFlags extends ClusterFlags {
  readonly output?: OutputFormat;
  readonly watch?: number | true;
  readonly once?: true;
}

/** Once, or until interrupted. @param usualPace seconds between drawings @throws CliError, KubeError */
export function run(nodes: readonly string[], flags: TopFlags, usualPace: number): Promise<void> {
  const { output, once } = flags;
  const seconds = typeof flags.watch === 'number' ? flags.watch : usualPace;
  const isLive = process.stdout.isTTY && output === undefined;
  const repeats = once !== true && (flags.watch !== undefined || isLive);
  return usingCluster(flags, ({ client }) =>
    showRepeatedly(output, repeats ? seconds : undefined, {
      read: () => readTop(client, nodes, Date.now()),
      lines: (view, terminal, wide) => linesOf(view, nodes, terminal, wide),
      show: (view) => show(view, nodes, output),
    }),
  );
}

function linesOf(view: TopView, nodes: readonly string[], terminal: Terminal, wide: boolean): Line[] {
  if (nodes.length === 0) return topLines(view, terminal, wide);
  return [...view.nodes.flatMap((node, i) => [...(i > 0 ? [''] : []), ...nodeLines(node, terminal)]), ...view.notes];
}

function show(view: TopView, nodes: readonly string[], output: OutputFormat | undefined): Promise<void> {
  const data = { nodes: view.nodes.map(viewData), notes: view.notes };
  return print(output, data, {
    text: (terminal, wide) => linesOf(view, nodes, terminal, wide),
    name: () => view.nodes.map(({ name }) => `node/${name}`),
  });
}
