import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { endsWithUs } from '../test/support/children.ts';
import { root } from './support/process.ts';
import type { BenchSettings } from './support/settings.ts';
import type { BenchResult } from './support/timing.ts';

/** Input of the process that measures one group. */
export interface GroupRun extends Omit<BenchSettings, 'asked'> {
  /** Index in GROUPS. */
  readonly group: number;
  /** Prefix of the names to measure. */
  readonly prefix: string;
  readonly quick: boolean;
  /** Seconds until the measurement is ended. */
  readonly deadline: number;
}

/** What that process sends when it ends. */
export interface GroupReport {
  readonly results?: readonly BenchResult[];
  readonly error?: string;
}

/** Seconds in which a measurement that is ended stops its processes. */
const GRACE_SECONDS = 10;

/**
 * Measures one group in a separate process, so that no row depends on code that was compiled, or memory that was
 * allocated or collected, for earlier rows.
 * @throws Error if that process fails, or does not end by its deadline; its standard error is shown
 */
export async function measureApart(run: GroupRun): Promise<readonly BenchResult[]> {
  const { deadline } = run;
  const args = ['--import', 'tsx', join(root, 'bench/group.ts'), JSON.stringify(run)];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2, 'ipc'] });
  endsWithUs(child);
  let report: GroupReport | undefined;
  child.on('message', (message) => {
    report = message as GroupReport;
  });
  const timers = [
    setTimeout(() => child.kill('SIGTERM'), deadline * 1000),
    setTimeout(() => child.kill('SIGKILL'), (deadline + GRACE_SECONDS) * 1000),
  ];
  const begun = performance.now();
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  for (const timer of timers) clearTimeout(timer);
  if (report?.results !== undefined) return report.results;
  const isLate = performance.now() - begun >= deadline * 1000;
  const reason = isLate ? `it did not end within ${deadline} s` : `it ended with ${signal ?? `status ${code}`}`;
  throw new Error(report?.error ?? reason);
}
