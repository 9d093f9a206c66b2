import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** An input that was once judged wrong, kept as a regression test. */
export interface Case {
  readonly file: string;
  readonly why: string;
  readonly input: unknown;
}

const FOLDER = join(import.meta.dirname, 'cases');

export function casesOf(target: string): Case[] {
  const folder = join(FOLDER, target);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((file) => ({ file, ...(JSON.parse(readFileSync(join(folder, file), 'utf8')) as Omit<Case, 'file'>) }));
}

/** Saves an input. Returns the file's path. */
export function keepCase(target: string, { why, input }: Omit<Case, 'file'>): string {
  const content = `${JSON.stringify({ why, input }, null, 2)}\n`;
  const name = createHash('sha256').update(JSON.stringify(input)).digest('hex').slice(0, 12);
  mkdirSync(join(FOLDER, target), { recursive: true });
  const file = join(FOLDER, target, `${name}.json`);
  writeFileSync(file, content);
  return file;
}
