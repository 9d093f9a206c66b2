import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const STAND_IN = join(import.meta.dirname, '../../test/node-agent/fixtures/ovs-stand-in.cjs');
/** Threads that a Node.js process has beside those it is asked for. */
const OWN_THREADS = 7;

export interface ManyThreads {
  readonly pid: number;
  /** Where its pidfile is. */
  readonly rundir: string;
  stop(): void;
}

/** Starts a process that bears the name of ovs-vswitchd and has that many threads. */
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
  const started = readdirSync(`/proc/${pid}/task`).length;
  if (Math.abs(started - threads) > 2) throw new Error(`${started} threads instead of ${threads}`);
  return {
    pid,
    rundir,
    stop() {
      child.kill('SIGKILL');
      rmSync(rundir, { recursive: true, force: true });
    },
  };
}
