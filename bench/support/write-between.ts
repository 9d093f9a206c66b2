import { readFileSync, writeFileSync } from 'node:fs';

const END = '<!-- end of what was measured -->';

/**
 * Replaces the text of a page between `<!-- measured: COMMAND -->` and the next closing mark.
 *
 * @param command the measuring command, as in the first mark
 * @throws Error if the page has no such marks
 */
export function writeBetween(file: string, command: string, text: string): void {
  const page = readFileSync(file, 'utf8');
  const mark = `<!-- measured: ${command} -->`;
  const begin = page.indexOf(mark);
  const end = page.indexOf(END, begin);
  if (begin < 0 || end < 0) throw new Error(`${file} has no lines ${mark} and ${END} to write between`);
  writeFileSync(file, `${page.slice(0, begin + mark.length)}\n\n${text}\n\n${page.slice(end)}`);
}
