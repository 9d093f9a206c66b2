import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const STAND_IN = join(import.meta.dirname, '../../test/node-agent/fixtures/ovs-stand-in.cjs');
/** More than a Node.js process has by itself, whatever the machine; the rest is started one by one. */
const OWN_THREADS = 24;

export interface ManyThreads {
  readonly pid: number;
  /** Where its pidfile is. */
  readonly rundir: string;
  stop(): void;
}

/** Starts a process that bears the name of ovs-vswitchd and has that many threads, its own included. */
export async function startManyThreads(threads: number): Promise<ManyThreads> {
  const rundir = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const pidfile = join(rundir, 'ovs-vswitchd.pid');
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key !== 'NODE_OPTIONS'));
  const child: ChildProcess = spawn(
    process.execPath,
    [STAND_IN, 'ovs-vswitchd', String(Math.max(0, threads - OWN_THREADS)), pidfile],
    { stdio: ['pipe', 'pipe', 'inherit'], env },
  );
  await once(child.stdout!, 'data');
  const pid = child.pid!;
  while (readdirSync(`/proc/${pid}/task`).length < threads) {
    child.stdin!.write('more\n');
    await once(child.stdout!, 'data');
  }
  return {
    pid,
    rundir,
    stop() {
      child.kill('SIGKILL');
      rmSync(rundir, { recursive: true, force: true });
    },
  };
}
