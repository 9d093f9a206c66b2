import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What the build reads that is in no bundle: packages, settings, programs of the build, C sources, the page's other files. */
const READ = [
  'LICENSE',
  'build-console.ts',
  'build.ts',
  'console',
  'native',
  'package-lock.json',
  'package.json',
  'packaging',
  'tsconfig.json',
];

/**
 * The text of .dockerignore: an engine is sent what the build reads, and nothing else. The folders are those that the
 * bundles were made of, so a new one cannot be forgotten.
 * @param dist with inputs.json, as `npm run build` leaves it
 */
export async function ignoreFile(dist: string): Promise<string> {
  const inputs = JSON.parse(await readFile(join(dist, 'inputs.json'), 'utf8')) as Record<string, readonly string[]>;
  const own = Object.values(inputs)
    .flat()
    .filter((file) => !file.includes('node_modules/') && !file.includes(':'));
  const top = new Set([...READ, ...own.map((file) => file.split('/')[0] ?? file)]);
  const lines = [...top].sort().map((name) => `!${name}`);
  const head = '# Written by `npm run build:image -- --context`: what a build reads, and nothing else.';
  return `${[head, '*', ...lines, '**/node_modules'].join('\n')}\n`;
}
