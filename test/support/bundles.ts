import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');

let built = false;

/** Builds dist/ once in a test run, so that what is tested is what the sources are. */
export function buildOnce(): void {
  if (built) return;
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'pipe' });
  built = true;
}
