import { readFileSync, writeFileSync } from 'node:fs';

const BEGIN = '<!-- measured: npm run scale -- --write docs/reference/scale.md -->';
const END = '<!-- end of what was measured -->';

/** Replaces what stands between the two marks of a page. @throws Error if the page has no such marks */
export function writeBetween(file: string, text: string): void {
  const page = readFileSync(file, 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${file} has no lines ${BEGIN} and ${END} to write between`);
  writeFileSync(file, `${page.slice(0, begin + BEGIN.length)}\n\n${text}\n\n${page.slice(end)}`);
}
