import { mkdirSync, mkdtempSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAssignments } from '../../node-agent/assignments/assignments.ts';
import { createLogger } from '../../runtime/log.ts';
import { paced } from '../support/pace.ts';
import type { BenchResult } from '../support/timing.ts';

const CHANGES = 200;
const ROUNDS = 5;
const BOUND = 20;

/** The text of change number i: a pod of 4 CPUs is added or removed among 60 others. */
function checkpoint(i: number): string {
  const entries = Object.fromEntries(
    Array.from({ length: 60 }, (_, pod) => [`uid-${pod}`, { compute: `${pod * 4 + 8}-${pod * 4 + 11}` }]),
  );
  if (i % 2 === 0) Object.assign(entries, { fresh: { compute: '4-7' } });
  return JSON.stringify({ policyName: 'static', defaultCpuSet: i % 2 === 0 ? '0-3' : '0-7', entries });
}

/** Milliseconds from a rename to the callback of `listen`, for each of many renames; ascending. */
async function delays(file: string, listen: (heard: () => void) => void): Promise<number[]> {
  let heard = () => {};
  listen(() => heard());
  const millis: number[] = [];
  for (let i = 0; i < CHANGES; i++) {
    writeFileSync(`${file}.tmp`, checkpoint(i));
    const published = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const begun = performance.now();
    renameSync(`${file}.tmp`, file);
    await published;
    millis.push(performance.now() - begun);
    // Ignores the second event of the same rename.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return millis.sort((a, b) => a - b);
}

const p99 = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;

async function bare(directory: string): Promise<number> {
  const watcher = watch(directory);
  const name = 'cpu_manager_state';
  const millis = await delays(join(directory, name), (heard) =>
    watcher.on('change', (_event, changed) => {
      if (changed === name) heard();
    }),
  );
  watcher.close();
  return p99(millis);
}

async function agent(directory: string): Promise<number> {
  const stop = new AbortController();
  const assignments = createAssignments({
    kubeletDir: directory,
    online: () => CpuSet.range(0, 255),
    log: createLogger('bench', 'silent'),
    onFailure: () => {},
  });
  const done = assignments.run(stop.signal);
  let last = 0;
  const millis = await delays(join(directory, 'cpu_manager_state'), (heard) =>
    assignments.subscribe((view) => {
      if (view.assignments.length === last) return;
      last = view.assignments.length;
      heard();
    }),
  );
  stop.abort();
  await done;
  return p99(millis);
}

/** From a rename of cpu_manager_state with 60 pods to a subscriber with the new view, relative to a bare fs.watch. */
export async function renameToSubscriber(): Promise<BenchResult> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  mkdirSync(join(directory, 'pod-resources'));
  const ratios: number[] = [];
  try {
    await bare(directory);
    for (let round = 0; round < paced(ROUNDS); round++) ratios.push((await agent(directory)) / (await bare(directory)));
  } finally {
    rmSync(directory, { recursive: true });
  }
  ratios.sort((a, b) => a - b);
  const ratio = ratios[ratios.length >>> 1] ?? Number.NaN;
  return {
    name: 'node-agent.rename-to-subscriber-p99-over-fs-watch',
    ratio,
    spread: [ratios[0] ?? Number.NaN, ratios.at(-1) ?? Number.NaN],
    bound: `<= ${BOUND}`,
    holds: ratio <= BOUND,
  };
}
