import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readArguments, runScript, UsageError } from './arguments.ts';

/** Prints the section of a version in CHANGELOG.md, without its heading. */
async function main(args: readonly string[]): Promise<void> {
  const { positionals, values } = readArguments(args, {
    file: { type: 'string', default: join(import.meta.dirname, '../CHANGELOG.md') },
  });
  const [argument, ...more] = positionals;
  if (argument === undefined || more.length > 0) throw new UsageError('name one version');
  const version = argument.replace(/^v/, '');
  const sections = (await readFile(values.file, 'utf8')).split(/^## /m).slice(1);
  const [heading = '', ...lines] = sections.find((section) => section.split(/\s/)[0] === version)?.split('\n') ?? [];
  if (heading === '') {
    const versions = sections.map((section) => section.split(/\s/)[0]).join(', ');
    throw new UsageError(`CHANGELOG.md has no section ${version} (it has ${versions})`);
  }
  if (heading.includes('unreleased')) console.error(`warning: section ${version} is still marked as unreleased`);
  const notes = lines.join('\n').trim();
  if (notes === '') throw new Error(`section ${version} of CHANGELOG.md is empty`);
  console.log(notes);
}

await runScript('npm run release:notes -- VERSION [--file CHANGELOG.md]', main);
