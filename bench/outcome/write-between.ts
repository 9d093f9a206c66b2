import { readFileSync, writeFileSync } from 'node:fs';

const BEGIN = '<!-- measured: npx tsx bench/outcome/run.ts --record -->';
const END = '<!-- end of what was measured -->';

/** Replaces the text between the two marks of a page. @throws Error if the page has no such marks */
export function writeBetween(file: string, text: string): void {
  writeFileSync(file, replaceBetween(readFileSync(file, 'utf8'), text, file));
}

export function replaceBetween(page: string, text: string, name: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${name} has no lines ${BEGIN} and ${END} to write between`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${text}\n\n${page.slice(end)}`;
}
