import { setTimeout as delay } from 'node:timers/promises';
import { KubeError } from '../../kube/client.ts';
import { endingOf } from '../support/errors.ts';
import { countText, type Line, lineText, type Sink, type Terminal, terminalOf } from '../support/terminal.ts';

type Out = Sink & Pick<NodeJS.WriteStream, 'write' | 'rows'>;

const ALTERNATE_SCREEN = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l' };

export interface WatchOptions {
  /** Seconds between two updates. */
  readonly seconds: number;
  /** Default: standard output. */
  readonly out?: Out;
  /** Ends the watch: Ctrl-C or a signal. */
  readonly signal: AbortSignal;
}

/** Whether a user sees the output. */
export const isWatchable = () => process.stdout.isTTY;

/** Returns the lines of a view for the current width of the terminal. */
export type Picture = (terminal: Terminal) => readonly Line[];

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
