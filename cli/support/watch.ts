import { setTimeout as delay } from 'node:timers/promises';
import { KubeError } from '../../kube/client.ts';
import { countText } from '../../model/amounts.ts';
import { endingOf } from './errors.ts';
import { type OutputFormat, untilInterrupted } from './output.ts';
import { type Line, lineText, type Sink, type Terminal, terminalOf } from './terminal.ts';

/** A view of the cluster that a command prints once or repeatedly. */
interface Repeated<View> {
  read(): Promise<View>;
  lines(view: View, terminal: Terminal, wide: boolean): readonly Line[];
  /** Prints it once, in the output format. */
  show(view: View): Promise<void>;
}

/**
 * Prints a view once, or until it is interrupted: in place on a terminal; data as one document after the other.
 * @param seconds between two views; undefined: once
 */
export async function showRepeatedly<View>(
  output: OutputFormat | undefined,
  seconds: number | undefined,
  { read, lines, show }: Repeated<View>,
): Promise<void> {
  if (seconds === undefined) return show(await read());
  return untilInterrupted(async (signal) => {
    if (output === undefined || output === 'wide') {
      const picture = async () => {
        const view = await read();
        return (terminal: Terminal) => lines(view, terminal, output === 'wide');
      };
      return watch(picture, { seconds, signal });
    }
    while (!signal.aborted) {
      await show(await read());
      await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  });
}

type Out = Sink & Pick<NodeJS.WriteStream, 'write' | 'rows'>;

const ALTERNATE_SCREEN = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l' };

interface WatchOptions {
  readonly seconds: number;
  readonly out?: Out;
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
