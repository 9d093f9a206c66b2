import { styleText } from 'node:util';

export type Style = Parameters<typeof styleText>[0];
export type Paint = (style: Style | undefined, text: string) => string;

/** The capabilities of the terminal behind a stream. */
export interface Terminal {
  readonly color: boolean;
  /** Columns; unlimited without a terminal. */
  readonly width: number;
  readonly paint: Paint;
}

/** The destination of output. */
export type Sink = Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>;

/**
 * The terminal of a stream. Colour only on a terminal, and never with NO_COLOR (https://no-color.org) or TERM=dumb;
 * FORCE_COLOR enables it on a pipe.
 */
export function terminalOf(stream: Sink, env: NodeJS.ProcessEnv = process.env): Terminal {
  const forbidden = (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb';
  const forced = (env.FORCE_COLOR ?? '') !== '' && env.FORCE_COLOR !== '0';
  const color = !forbidden && (forced || stream.isTTY === true);
  const columns = Number(env.COLUMNS) || stream.columns;
  const width =
    columns !== undefined && columns > 0 && (stream.isTTY || env.COLUMNS) ? columns : Number.POSITIVE_INFINITY;
  return { color, width, paint: (style, text) => (color && style !== undefined ? paint(style, text) : text) };
}

/** The stream was already checked for a terminal, so styleText need not check again. */
function paint(style: Style, text: string): string {
  return styleText(style, text, { validateStream: false });
}

/** The text cut to a number of characters. It must not contain colour codes. */
export function cut(text: string, width: number): string {
  if (text.length <= width) return text;
  return width < 1 ? '' : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/**
 * The text in lines with at most `width` characters, broken between words.
 * @param first prefix of the first line
 * @param rest prefix of the other lines
 */
export function wrap(text: string, width: number, first = '', rest = ' '.repeat(first.length)): string[] {
  const lines: string[] = [];
  let [line, empty] = [first, true];
  for (const word of text.split(' ')) {
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line);
      [line, empty] = [rest, true];
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  return [...lines, line];
}
