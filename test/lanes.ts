import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { root } from './support/bundles.ts';

/**
 * Folders and files of test/ that run side by side, in a process each: half of their time the tests wait for servers to start
 * and for events to come. The lanes take about equally long.
 */
export const LANES: readonly (readonly string[])[] = [
  [
    'attacks',
    'bench',
    'cli',
    'console',
    'demo',
    'diagnosis',
    'docs',
    'faults',
    'fuzz',
    'hardware',
    'image',
    'imports',
    'kube',
    'kubevirt',
    'lab',
    'lanes.test.ts',
    'lint.test.ts',
    'manifests',
    'model',
  ],
  [
    'native',
    'node-agent',
    'packaging',
    'real',
    'runtime',
    'sandbox',
    'scheduler-plugin',
    'skew',
    'soak',
    'support',
    'vectors',
    'webhook',
  ],
];

/** What a run of tests comes to. */
export interface Tally {
  readonly passes: number;
  readonly failures: number;
  /** A line for each test that failed: its file, title and message. */
  readonly failed: readonly string[];
  readonly pending: number;
  /** Full titles of the tests that passed, by file below test/, less `.test.ts`. */
  readonly passed: readonly (readonly [string, readonly string[]])[];
  /** Seconds that files took, the longest first. */
  readonly seconds: readonly (readonly [string, number])[];
  /** A line for each part that was missed. */
  readonly missing: readonly string[];
}

/**
 * Runs each lane in a process of its own, with bundles of its own. The first writes as it goes; what another writes is
 * printed when that one has ended.
 * @returns the sum of what they come to
 * @throws Error if a lane ended without a result
 */
export async function runLanes(script: string): Promise<Tally> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lanes-'));
  try {
    const tallies = await Promise.all(LANES.map((folders, index) => runLane(script, folders, index, directory)));
    return {
      passes: sumOf(tallies, 'passes'),
      failures: sumOf(tallies, 'failures'),
      failed: tallies.flatMap(({ failed }) => failed),
      pending: sumOf(tallies, 'pending'),
      passed: tallies.flatMap(({ passed }) => passed),
      seconds: tallies.flatMap(({ seconds }) => seconds).sort(([, a], [, b]) => b - a),
      missing: mergeCounts(tallies.flatMap(({ missing }) => missing)),
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const sumOf = (tallies: readonly Tally[], key: 'passes' | 'failures' | 'pending') =>
  tallies.reduce((sum, tally) => sum + tally[key], 0);

async function runLane(script: string, folders: readonly string[], index: number, directory: string): Promise<Tally> {
  const result = join(directory, `${index}.json`);
  const dist = join(root, 'node_modules/.cache/plumbline', `lane-${index + 1}`);
  const child = spawn(process.execPath, [...process.execArgv, script, ...folders, '--result', result], {
    cwd: root,
    stdio: ['ignore', index === 0 ? 'inherit' : 'pipe', index === 0 ? 'inherit' : 'pipe'],
    env: { ...process.env, ...(index > 0 && { PLUMBLINE_DIST: dist }) },
  });
  // It ends with this process, and its children with it.
  const end = () => child.kill();
  process.once('exit', end);
  const written: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr] as (Readable | null)[])
    stream?.on('data', (chunk: Buffer) => written.push(chunk));
  await new Promise((resolve) => child.once('close', resolve));
  process.removeListener('exit', end);
  process.stdout.write(Buffer.concat(written));
  const text = await readFile(result, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`the tests of ${folders.join(', ')} ended without a result`);
  return JSON.parse(text) as Tally;
}

/** `skipped 3 tests that need X` and `skipped 4 tests that need X` make `skipped 7 tests that need X`. */
export function mergeCounts(lines: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const [, count = '0', rest = line] = /^skipped (\d+) tests (.*)$/s.exec(line) ?? [];
    counts.set(rest, (counts.get(rest) ?? 0) + Number(count));
  }
  return [...counts].map(([rest, count]) => `skipped ${count} tests ${rest}`);
}
