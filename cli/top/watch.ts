import { setTimeout as delay } from 'node:timers/promises';
import { KubeError } from '../../kube/client.ts';
import { endingOf } from '../support/errors.ts';
import { countText, type Line, lineText, type Sink, type Terminal, terminalOf } from '../support/terminal.ts';

type Out = Sink &
  Pick<NodeJS.WriteStream, 'write' | 'rows'> & {
    on?(event: 'resize', listener: () => void): unknown;
    off?(event: 'resize', listener: () => void): unknown;
  };

const ALTERNATE_SCREEN = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l' };

/** The keys of a live view, as a terminal in raw mode sends them. */
export interface Keys {
  readonly isTTY?: boolean | undefined;
  setRawMode(on: boolean): unknown;
  on(event: 'data', listener: (keys: Buffer) => void): unknown;
  off(event: 'data', listener: (keys: Buffer) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

export interface WatchOptions {
  /** Seconds between two updates. */
  readonly seconds: number;
  /** Default: standard output. */
  readonly out?: Out;
  /** Ends the watch: Ctrl-C or a signal. */
  readonly signal: AbortSignal;
  /** Source of keys; default: standard input. */
  readonly keys?: Keys | undefined;
}

/** Returns the lines of a view for the current width of the terminal. */
export type Picture = (terminal: Terminal) => readonly Line[];

/** Whether a user sees the output and can press keys. */
export const isWatchable = () => process.stdout.isTTY && process.stdin.isTTY;

/**
 * Reads and draws at an interval until the signal: in place on a terminal, whose content is restored at the end;
 * otherwise one view after the other. If the cluster does not respond, it prints the error and retries. On a terminal q
 * quits, arrows, j, k, Page Up, Page Down, g and G scroll, r refreshes, and a resize redraws at once.
 */
export async function watch(
  read: () => Promise<Picture>,
  { seconds, out = process.stdout, signal: given, keys = process.stdin }: WatchOptions,
): Promise<void> {
  const inPlace = out.isTTY === true;
  const left = new AbortController();
  const signal = AbortSignal.any([given, left.signal]);
  let again = new AbortController();
  let shown: Picture | undefined;
  let top = 0;
  const draw = () => {
    if (shown === undefined) return;
    const terminal = terminalOf(out);
    const lines = shown(terminal).map((line) => lineText(line, terminal.color));
    if (!inPlace) return void out.write(`${lines.join('\n')}\n`);
    const rows = out.rows ?? 24;
    top = Math.max(0, Math.min(top, lines.length - rows + 1));
    out.write(pictureText(lines, rows, top));
  };
  const onKeys = (pressed: Buffer) => {
    const rows = out.rows ?? 24;
    for (const key of pressed.toString('latin1').match(KEY) ?? []) {
      if (key === 'q' || key === CTRL_C) left.abort();
      else if (key === 'r') again.abort();
      else top = moved(key, top, rows);
    }
    if (!signal.aborted) draw();
  };
  const live = inPlace && keys?.isTTY === true;
  if (inPlace) out.write(ALTERNATE_SCREEN.enter);
  if (live) {
    keys.setRawMode(true);
    keys.on('data', onKeys);
    keys.resume();
  }
  out.on?.('resize', draw);
  try {
    while (!signal.aborted) {
      const isFirst = shown === undefined;
      shown = await read().catch((error: unknown) => {
        // Retries only after a first success; a first failure ends the command.
        if (isFirst || !(error instanceof KubeError)) throw error;
        const line = `${new Date().toLocaleTimeString()}: ${endingOf(error).line}; trying again`;
        return () => [line];
      });
      draw();
      again = new AbortController();
      await delay(seconds * 1000, undefined, { signal: AbortSignal.any([signal, again.signal]) }).catch(
        () => undefined,
      );
    }
  } finally {
    out.off?.('resize', draw);
    if (live) {
      keys.off('data', onKeys);
      keys.setRawMode(false);
      keys.pause();
    }
    if (inPlace) out.write(ALTERNATE_SCREEN.leave);
  }
}

const CTRL_C = '\u0003';
const ESCAPE = '\u001b';
/** Escape sequences of keys, and single characters. */
const KEY = new RegExp(`${ESCAPE}\\[\\d*[A-Z~]|[\\s\\S]`, 'g');

/** The first visible line after a key. */
function moved(key: string, top: number, rows: number): number {
  switch (key) {
    case 'j':
    case '\u001b[B':
      return top + 1;
    case 'k':
    case '\u001b[A':
      return top - 1;
    case ' ':
    case '\u001b[6~':
      return top + rows - 2;
    case 'b':
    case '\u001b[5~':
      return top - rows + 2;
    case 'g':
    case '\u001b[H':
      return 0;
    case 'G':
    case '\u001b[F':
      return Number.MAX_SAFE_INTEGER;
    default:
      return top;
  }
}

/**
 * The whole screen from the top left corner; each line clears the rest of its row, and the last one everything below.
 */
function pictureText(lines: readonly string[], rows: number, top: number): string {
  const rest = lines.length - top - rows + 1;
  const shown =
    lines.length <= rows
      ? lines
      : [
          ...lines.slice(top, top + rows - 1),
          `… ${top > 0 ? `${countText(top, 'line')} above, ` : ''}${countText(Math.max(0, rest), 'more line')}`,
        ];
  return `\x1b[H${shown.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`;
}
