import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RULES, type Tree } from './check.ts';
import { REMAINING } from './remaining.ts';

/**
 * Part of `npm run lint`: prints each file that is not where CONTRIBUTING.md says, and exits with 1. Files of remaining.ts may
 * break their rule until they follow it; then their lines must go.
 */
const ROOT = join(import.meta.dirname, '../..');
const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
const files = listed.toString().split('\0');
const tree: Tree = new Map(
  files
    .filter((file) => file !== '' && existsSync(join(ROOT, file)))
    .map((file) => [file, /\.(?:ts|tsx|cjs)$/.test(file) ? readFileSync(join(ROOT, file), 'utf8') : '']),
);
const messages = (Object.keys(RULES) as (keyof typeof RULES)[]).flatMap((rule) => {
  const faults = RULES[rule](tree);
  const remaining: readonly string[] = REMAINING[rule];
  const isRemaining = (file: string) =>
    remaining.some((path) => file === path || (path.endsWith('/') && file.startsWith(path)));
  const fresh = faults.filter(({ file }) => !isRemaining(file)).map(({ file, fault }) => `${file}: ${fault}`);
  const repaired = remaining
    .filter((path) => !faults.some(({ file }) => file === path || (path.endsWith('/') && file.startsWith(path))))
    .map((path) => `test/layout/remaining.ts: ${path} follows the rule now, remove its line of ${rule}`);
  return [...fresh, ...repaired];
});
for (const message of messages) console.error(message);
if (messages.length > 0)
  console.error(`${messages.length} files; docs/maintainers/testing.md says where a test stands`);
process.exit(messages.length > 0 ? 1 : 0);
