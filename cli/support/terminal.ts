import { styleText } from 'node:util';
import type { RemedyLines } from '../../diagnosis/remedies.ts';
import { cutText, MAX_TEXT_CHARACTERS, printable } from '../../runtime/printable.ts';

export type Style = Parameters<typeof styleText>[0];

interface StyledText {
  readonly style: Style;
  readonly text: string;
}

/** Counts as written by someone else: printed with visible escapes, cut to MAX_TEXT_CHARACTERS. */
export type Line = string | readonly LinePart[];
export type LinePart = string | StyledText;

export interface Terminal {
  readonly color: boolean;
  readonly width: number;
}

export type Sink = Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>;

/** Colour only on a terminal, never with NO_COLOR (https://no-color.org) or TERM=dumb; FORCE_COLOR enables it. */
export function terminalOf(stream: Sink, env: NodeJS.ProcessEnv = process.env): Terminal {
  const forbidden = (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb';
  const forced = (env.FORCE_COLOR ?? '') !== '' && env.FORCE_COLOR !== '0';
  const columns = Number(env.COLUMNS) || stream.columns;
  const width =
    columns !== undefined && columns > 0 && (stream.isTTY || env.COLUMNS) ? columns : Number.POSITIVE_INFINITY;
  return { color: !forbidden && (forced || stream.isTTY === true), width };
}

export function paint(style: Style | undefined, text: string): LinePart {
  return style === undefined ? text : { style, text };
}

export function joinParts(lines: readonly Line[], separator = ''): LinePart[] {
  return lines.flatMap((line, i) => [
    ...(i > 0 && separator !== '' ? [separator] : []),
    ...(typeof line === 'string' ? [line] : line),
  ]);
}

/** A line as it is printed. Everything that a command prints goes through this function or is JSON or YAML. */
export function lineText(line: Line, color = false): string {
  return joinParts([line])
    .map((part) => {
      if (typeof part === 'string') return printable(part);
      const text = printable(part.text);
      // The stream was already checked for a terminal.
      return color ? styleText(part.style, text, { validateStream: false }) : text;
    })
    .join('');
}

export function someNames(names: readonly string[], max = 3): string {
  return names.slice(0, max).join(', ') + (names.length > max ? ` and ${names.length - max} more` : '');
}

export function cutLine(text: string, width: number): string {
  if (text.length <= width) return text;
  return width < 1 ? '' : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** At most `width` characters, broken between words. @param text cut to MAX_TEXT_CHARACTERS; words all appear */
export function wrap(
  text: string | readonly string[],
  width: number,
  first = '',
  rest = ' '.repeat(first.length),
): string[] {
  const words = typeof text === 'string' ? cutText(text, MAX_TEXT_CHARACTERS).split(' ') : text;
  const lines: string[] = [];
  let line = first;
  for (const [i, word] of words.entries()) {
    if (i > 0 && line.length + 1 + word.length > width) {
      lines.push(line);
      line = rest + word;
    } else line += i === 0 ? word : ` ${word}`;
  }
  return [...lines, line];
}

/** Paragraphs at the width of the terminal. Lines that begin with a space are options and examples, and stay. */
export function reflow(lines: readonly string[], width: number): string[] {
  if (lines.every((line) => line.length <= width)) return [...lines];
  // Lines of a paragraph are joined, the others stand alone.
  const isText = (line = '') => line !== '' && !line.startsWith(' ');
  const paragraphs: string[][] = [];
  for (const line of lines) {
    if (isText(line) && isText(paragraphs.at(-1)?.[0])) paragraphs.at(-1)?.push(line);
    else paragraphs.push([line]);
  }
  return paragraphs.flatMap((paragraph) => (isText(paragraph[0]) ? wrap(paragraph.join(' '), width) : paragraph));
}

/** Its text, then each command on an unbroken line, to copy. @param first prefix of the first line */
export function remedyParagraph([text, ...commands]: RemedyLines, width: number, first: string): string[] {
  const indent = ' '.repeat(first.search(/\S/) + 4);
  const lines = wrap(commands.length === 0 ? text : `${text}:`, width, first);
  return [...lines, ...commands.map((command) => indent + command)];
}

const MAX_CELL_CHARACTERS = 1024;

export function tableLines(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows].map((row) => row.map((cell) => cutText(cell, MAX_CELL_CHARACTERS)));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}
