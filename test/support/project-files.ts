import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bundles.ts';

/** The files that a clone of this checkout would have, new ones among them, by their paths; of these patterns, if any. */
export function projectFiles(...patterns: readonly string[]): string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...patterns];
  return execFileSync('git', args, { cwd: root })
    .toString()
    .split('\0')
    .filter((file) => file !== '' && existsSync(join(root, file)));
}
