import { setTimeout as delay } from 'node:timers/promises';
import { KubeError } from '../../kube/client.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { endingOf } from '../support/errors.ts';
import { type OutputFormat, print, untilInterrupted } from '../support/output.ts';
import { countText, type Line, lineText, type Sink, type Terminal, terminalOf } from '../support/terminal.ts';
import { nodeLines, topLines } from './lines.ts';
import { viewData } from './node-view.ts';
import { readTop, type TopView } from './read.ts';

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
  const { output, once } = flags;
  const seconds = typeof flags.watch === 'number' ? flags.watch : usualPace;
  return usingCluster(flags, async ({ client }) => {
    const read = () => readTop(client, nodes, Date.now());
    // A live map is for a user who sees it.
    const isLive = process.stdout.isTTY && output === undefined;
    if (once || (flags.watch === undefined && !isLive)) return show(await read(), nodes, output);
    return untilInterrupted(async (signal) => {
      if (output === undefined || output === 'wide') {
        const picture = async () => {
          const view = await read();
          return (terminal: Terminal) => linesOf(view, nodes, terminal, output === 'wide');
        };
        return watch(picture, { seconds, signal });
      }
      // Data is printed one document after the other.
      while (!signal.aborted) {
        await show(await read(), nodes, output);
        await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
      }
    });
  });
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

type Out = Sink & Pick<NodeJS.WriteStream, 'write' | 'rows'>;

const ALTERNATE_SCREEN = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l' };

interface WatchOptions {
  /** Seconds between two updates. */
  readonly seconds: number;
  /** Default: standard output. */
  readonly out?: Out;
  /** Ends the watch: Ctrl-C or a signal. */
  readonly signal: AbortSignal;
}

/** Returns the lines of a view for the current width of the terminal. */
type Picture = (terminal: Terminal) => readonly Line[];

/**
 * Reads and draws at an interval until the signal: in place on a terminal, whose content is restored at the end;
 * otherwise one view after the other. If the cluster does not respond, it prints the error and retries.
 */
export async function watch(
  read: () => Promise<Picture>,
  { seconds, out = process.stdout, signal }: WatchOptions,
): Promise<void> {
  const inPlace = out.isTTY === true;
  let picture: Picture | undefined;
  if (inPlace) out.write(ALTERNATE_SCREEN.enter);
  try {
    while (!signal.aborted) {
      const isFirst = picture === undefined;
      picture = await read().catch((error: unknown) => {
        // Retries only after a first success; a first failure ends the command.
        if (isFirst || !(error instanceof KubeError)) throw error;
        const line = `${new Date().toLocaleTimeString()}: ${endingOf(error).line}; trying again`;
        return () => [line];
      });
      const terminal = terminalOf(out);
      const lines = picture(terminal).map((line) => lineText(line, terminal.color));
      out.write(inPlace ? screenText(lines, out.rows ?? 24) : `${lines.join('\n')}\n`);
      await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    if (inPlace) out.write(ALTERNATE_SCREEN.leave);
  }
}

/**
 * The whole screen from the top left corner; each line clears the rest of its row, and the last one everything below.
 */
function screenText(lines: readonly string[], rows: number): string {
  const rest = countText(lines.length - rows + 1, 'more line');
  const fitting = lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `… ${rest}`];
  return `\x1b[H${fitting.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`;
}
