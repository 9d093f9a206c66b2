import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { endsWithUs } from '../test/support/children.ts';
import { root } from './support/process.ts';
import type { BenchResult } from './support/timing.ts';

/** Input of the process that measures one group. */
export interface GroupRun {
  /** Index in GROUPS. */
  readonly group: number;
  /** Prefix of the names to measure. */
  readonly prefix: string;
  readonly quick: boolean;
  readonly nodes: number;
  readonly pods: number;
  readonly rounds: number;
  readonly idle: number;
}

/**
 * Measures one group in a separate process, so that no row depends on code that was compiled, or memory that was
 * allocated or collected, for earlier rows.
 * @throws Error if that process fails; its standard error is shown
 */
export async function measureApart(run: GroupRun): Promise<BenchResult[]> {
  const args = ['--import', 'tsx', join(root, 'bench/group.ts'), JSON.stringify(run)];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2, 'ipc'] });
  endsWithUs(child);
  let results: BenchResult[] | undefined;
  child.on('message', (message) => {
    results = message as BenchResult[];
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (results === undefined)
    throw new Error(`group ${run.group} ended with ${signal ?? `status ${code}`} and no result`);
  return results;
}
