import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from '../support/command-line.ts';

const USAGE = `npx tsx test/vectors/format.ts [--check]

Writes the JSON files of test/vectors with one case in each line, so that a change of a case is a change of a line.

  --check  only names the files that are written otherwise, and ends with 1 if there are any`;

/** Characters up to which an object that is not an element of a list stays in one line. */
const WIDTH = 120;

/** One element of a list in each line, one property in each line of an object that is too long for one. */
export function withOneCaseALine(value: unknown, indent = ''): string {
  const text = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || indent.length + text.length <= WIDTH) return text;
  const inner = `${indent}  `;
  if (!Array.isArray(value)) {
    const lines = Object.entries(value).map(
      ([name, property]) => `${inner}${JSON.stringify(name)}: ${withOneCaseALine(property, inner)}`,
    );
    return `{\n${lines.join(',\n')}\n${indent}}`;
  }
  if (!value.some((element) => typeof element === 'object' && element !== null)) return text;
  return `[\n${value.map((element) => inner + JSON.stringify(element)).join(',\n')}\n${indent}]`;
}

if (process.argv[1] === import.meta.filename) {
  const { values } = commandLine(USAGE, { check: { type: 'boolean' } });
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
  const different = files.filter((file) => {
    if (!file.endsWith('.json')) return false;
    const path = join(import.meta.dirname, file);
    const before = readFileSync(path, 'utf8');
    const after = `${withOneCaseALine(JSON.parse(before))}\n`;
    if (before !== after && values.check !== true) writeFileSync(path, after);
    return before !== after;
  });
  for (const file of different)
    console.log(`test/vectors/${file}: ${values.check === true ? 'run npm run format' : 'written'}`);
  process.exit(values.check === true && different.length > 0 ? 1 : 0);
}
