import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bundles.ts';

/** The files that a clone of this checkout would have, those not committed yet among them. */
export function filesOfCheckout(): string[] {
  return execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
    .toString()
    .split('\0')
    .filter((file) => file !== '' && existsSync(join(root, file)));
}
