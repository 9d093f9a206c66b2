import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';

/** The files that git tracks and that are there, below the repository's root; of these patterns, if any. */
export function trackedFiles(...patterns: readonly string[]): string[] {
  return execFileSync('git', ['ls-files', '-z', ...patterns], { cwd: root })
    .toString()
    .split('\0')
    .filter((file) => file !== '' && existsSync(join(root, file)));
}
