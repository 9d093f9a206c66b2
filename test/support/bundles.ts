import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = join(import.meta.dirname, '../..');

/** The directory of the bundles: dist/, or PLUMBLINE_DIST, as for the build. */
export const dist = resolve(root, process.env['PLUMBLINE_DIST'] ?? 'dist');

export function bundledFiles(): ReadonlySet<string> {
  const inputs = JSON.parse(readFileSync(join(dist, 'inputs.json'), 'utf8')) as Readonly<Record<string, string[]>>;
  return new Set(Object.values(inputs).flat());
}

let built = false;

export function buildOnce(): void {
  if (built) return;
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'pipe' });
  built = true;
}
