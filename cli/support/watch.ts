import { setTimeout as delay } from 'node:timers/promises';
import { KubeError } from '../../kube/client.ts';
import { countText } from '../../model/amounts.ts';
import { endingOf } from './errors.ts';
import { type OutputFormat, untilInterrupted } from './output.ts';
import { type Line, lineText, type Sink, type Terminal, terminalOf } from './terminal.ts';

interface Repeated<View> {
  read(): Promise<View>;
  lines(view: View, terminal: Terminal, wide: boolean): readonly Line[];
  show(view: View): Promise<void>;
}

/** In place on a terminal; data as documents. @param seconds between views; undefined: once */
export async function showRepeatedly<View>(
  output: OutputFormat | undefined,
  seconds: number | undefined,
  { read, lines, show }: Repeated<View>,
): Promise<void> {
  if (seconds === undefined) return show(await read());
  const picture = async () => {
    const view = await read();
    return (terminal: Terminal) => lines(view, terminal, output === 'wide');
  };
  return untilInterrupted(async (signal) => {
    if (output === undefined || output === 'wide') return watch(picture, { seconds, signal });
    while (!signal.aborted) {
      await show(await read());
      await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  });
}

type Out = Sink & Pick<NodeJS.WriteStream, 'write' | 'rows'>;

const ALTERNATE_SCREEN = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l' };

type Picture = (terminal: Terminal) => readonly Line[];

/** Until the signal, in place on a terminal, restored at the end. If the cluster does not respond, it retries. */
export async function watch(
  read: () => Promise<Picture>,
  { seconds, signal, out = process.stdout }: { seconds: number; signal: AbortSignal; out?: Out },
): Promise<void> {
  const isTerminal = out.isTTY === true;
  let picture: Picture | undefined;
  if (isTerminal) out.write(ALTERNATE_SCREEN.enter);
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
      out.write(isTerminal ? screenText(lines, out.rows ?? 24) : `${lines.join('\n')}\n`);
      await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    if (isTerminal) out.write(ALTERNATE_SCREEN.leave);
  }
}

/** From the top left corner; each line clears the rest of its row, the last one everything below. */
function screenText(lines: readonly string[], rows: number): string {
  const rest = countText(lines.length - rows + 1, 'more line');
  const fitting = lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `… ${rest}`];
  return `\x1b[H${fitting.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`;
}
