import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Inputs of the build that no bundle contains: packages, settings, build scripts, C sources, other files of the page.
 */
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
 * The text of .dockerignore, which limits the build context to the inputs of the build. The folders are those that the
 * bundles were built from, so a new one cannot be forgotten.
 * @param dist contains inputs.json, as `npm run build` writes it
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
