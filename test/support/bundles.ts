import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

export const root = join(import.meta.dirname, '../..');

/** The directory of the bundles: dist/, or PLUMBLINE_DIST, as for the build. */
export const dist = resolve(root, process.env['PLUMBLINE_DIST'] ?? 'dist');

let built = false;

/** Builds the bundles once in a test run, so that the tests use the current sources. */
export function buildOnce(): void {
  if (built) return;
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'pipe' });
  built = true;
}
