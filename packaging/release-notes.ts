import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandLine } from '../test/support/command-line.ts';

const USAGE = `usage: npm run release:notes -- VERSION [--file CHANGELOG.md]

Prints the section of a version in CHANGELOG.md, without its heading.`;

const file = { type: 'string', default: join(import.meta.dirname, '../CHANGELOG.md') } as const;
const { positionals, values, refuse } = commandLine(USAGE, { file }, true);
if (positionals.length !== 1) refuse('name one version');
const version = positionals.join().replace(/^v/, '');
const sections = (await readFile(values.file, 'utf8')).split(/^## /m).slice(1);
const [heading = '', ...lines] = sections.find((section) => section.split(/\s/)[0] === version)?.split('\n') ?? [];
if (heading === '') {
  const versions = sections.map((section) => section.split(/\s/)[0]).join(', ');
  refuse(`CHANGELOG.md has no section ${version} (it has ${versions})`);
}
if (heading.includes('unreleased')) console.error(`warning: section ${version} is still marked as unreleased`);
const notes = lines.join('\n').trim();
if (notes === '') throw new Error(`section ${version} of CHANGELOG.md is empty`);
console.log(notes);
