import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compile } from './c-program.ts';

export interface ManyThreads {
  /** In the order of the given names. */
  readonly pids: readonly number[];
  /** Directory of their pidfiles. */
  readonly rundir: string;
  stop(): void;
}

/** Starts processes with the names of Open vSwitch daemons and a number of idle threads each. */
export async function startManyThreads(names: readonly string[], threads: number): Promise<ManyThreads> {
  const program = compile('support/threads.c');
  const rundir = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const daemons = names.map((name) =>
    spawn(program.path, [name, String(threads), join(rundir, `${name}.pid`)], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  await Promise.all(daemons.map((daemon) => once(daemon.stdout, 'data')));
  return {
    pids: daemons.map(({ pid }) => pid!),
    rundir,
    stop() {
      for (const daemon of daemons) daemon.kill('SIGKILL');
      program.remove();
      rmSync(rundir, { recursive: true, force: true });
    },
  };
}
