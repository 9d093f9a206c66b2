import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './support/bundles.ts';
import { commandLine } from './support/command-line.ts';

/** Parts that most machines lack, so that a failure can stay unnoticed: each has a record of its last whole run. */
interface Tier {
  readonly command: string;
  /** The folders of the product that it tests most: a change in them makes the record stale. */
  readonly folders: readonly string[];
  readonly record?: string;
}

const CONTROL_PLANE = ['kube', 'manifests', 'model/admission', 'scheduler-plugin', 'webhook'] as const;
export const TIERS = {
  real: { command: 'npm test -- real --record', folders: CONTROL_PLANE },
  kubevirt: { command: 'npm test -- kubevirt --record', folders: [...CONTROL_PLANE, 'model/launcher'] },
  lab: { command: 'npm run test:lab -- --last-run', folders: ['hardware', 'model/kubelet', 'native', 'node-agent'] },
  bench: {
    command: 'npm run bench -- --write docs/maintainers/benchmarks.md',
    record: 'bench/last-run.md',
    folders: [
      ...['cli', 'console', 'diagnosis', 'hardware', 'kube', 'model', 'native', 'node-agent', 'runtime'],
      ...['scheduler-plugin', 'webhook'],
    ],
  },
} as const satisfies Record<string, Tier>;
export type TierName = keyof typeof TIERS;

/** Rows of a record: date, commit, versions, counts, and a digest for each folder, as `webhook/`. */
type Rows = ReadonlyMap<string, string>;

/** Records a run that has just ended. @param counts as text @throws Error if git cannot name the commit */
export function recordRun(
  tier: TierName,
  counts: string,
  versions: Iterable<readonly [name: string, version: string]>,
): void {
  const commit = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  const rows = {
    date: new Date().toISOString().slice(0, 10),
    commit,
    versions: [...versions].map(([name, version]) => `${name} ${version}`).join(', '),
    counts,
    ...Object.fromEntries(digestsOf(tier)),
  };
  const table = Object.entries(rows).map(([name, value]) => `|${name}|${value}|`);
  const text = ['# Last run', '', '|||', '|-|-|', ...table];
  writeFileSync(recordOf(tier), `${text.join('\n')}\n`);
}

export function checkLastRun(tier: TierName): { readonly isCurrent: boolean; readonly line: string } {
  const rows = readRecord(tier);
  if (rows === undefined) return { isCurrent: false, line: `${tier}: no run is recorded: ${TIERS[tier].command}` };
  const changed = digestsOf(tier).filter(([folder, digest]) => rows.get(folder) !== digest);
  const since =
    changed.length > 0
      ? `changed since: ${changed.map(([folder]) => folder).join(', ')}: ${TIERS[tier].command}`
      : 'none of its folders has changed since';
  const line = `${tier}: last run ${rows.get('date')}, commit ${rows.get('commit')}, ${rows.get('versions')}: ${rows.get('counts')}; ${since}`;
  return { isCurrent: changed.length === 0, line };
}

function recordOf(tier: TierName): string {
  return join(root, (TIERS[tier] as Tier).record ?? `test/${tier}/last-run.md`);
}

function readRecord(tier: TierName): Rows | undefined {
  const path = recordOf(tier);
  if (!existsSync(path)) return undefined;
  const rows = readFileSync(path, 'utf8').matchAll(/^\|([^|]+)\|(.*)\|$/gm);
  return new Map([...rows].map(([, name = '', value = '']) => [name, value]));
}

function digestsOf(tier: TierName): [folder: string, digest: string][] {
  return TIERS[tier].folders.map((folder) => {
    const hash = createHash('sha256');
    const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    for (const file of files.toSorted()) {
      hash
        .update(`${relative(root, file)}\0`)
        .update(readFileSync(file))
        .update('\0');
    }
    return [`${folder}/`, hash.digest('hex').slice(0, 12)];
  });
}

const USAGE = `npx tsx test/last-run.ts

Says for each tier of tests that needs special parts when it ran last, and what has changed since. Exits with 1 if something
has: a release needs a current run of each.`;

if (process.argv[1] === import.meta.filename) {
  commandLine(USAGE, {});
  const checks = (Object.keys(TIERS) as TierName[]).map((tier) => checkLastRun(tier));
  for (const { line } of checks) console.log(line);
  process.exit(checks.every(({ isCurrent }) => isCurrent) ? 0 : 1);
}
