import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OVSDB_SOCKET } from '../../node-agent/open-vswitch/ovsdb/follow.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startManyThreads } from '../support/many-threads.ts';
import { paced } from '../support/pace.ts';
import { bundle, memoryOf } from '../support/process.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { startAgentProcess } from './agent-process.ts';

const THREADS = 64;
/** Seconds after the start until a process counts as idle. */
const REST = 75;
/** Calls a second: fewer than a tenth of those that a loop with a period of one second makes on the same machine. */
const MAX_SYSTEM_CALLS = 8;
const MAX_RESIDENT_MEGABYTES = 80;

/** The bundled agent with every duty of a host while nothing changes: its system calls, and its resident memory. */
export async function idleAgent({ idle }: BenchSettings): Promise<BenchResult[]> {
  const daemons = await startManyThreads(['ovs-vswitchd', 'ovsdb-server'], THREADS);
  const answers = await startAnswers(daemons.rundir);
  const agent = await startAgentProcess({ flags: ['--gate', 'on'], rundir: daemons.rundir });
  try {
    await delay(paced(REST, 40) * 1000);
    const resident = memoryOf(agent.process.pid).rss / 1e6;
    const calls = await callsOf(agent.process.pid, idle);
    return [
      summary('node-agent.idle-system-calls-a-second', [total(calls) / idle], { most: MAX_SYSTEM_CALLS }),
      summary('node-agent.resident-megabytes', [resident], { most: MAX_RESIDENT_MEGABYTES }),
    ];
  } finally {
    await agent.stop();
    answers.stop();
    daemons.stop();
  }
}

/**
 * Sockets that answer, linked into the run directory: the database has one network. Without them the node's report would
 * have a problem, and the agent would check more often.
 */
async function startAnswers(rundir: string): Promise<{ stop(): void }> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const pidIn = (folder: string) => readFileSync(join(folder, 'ovs-vswitchd.pid'), 'utf8').trim();
  const children = ['ovsdb-server', 'ovs-vswitchd'].map((name) => {
    const flags = ['--name', name, '--threads', '0', '--rundir', directory, '--physnet', 'net0=0'];
    return spawn(process.execPath, [bundle('ovs-stand-in.cjs'), ...flags], { stdio: 'ignore' });
  });
  const names = () => [OVSDB_SOCKET, `ovs-vswitchd.${pidIn(directory)}.ctl`];
  const isThere = (name: string) => existsSync(join(directory, name));
  await eventually(() => isThere('ovs-vswitchd.pid') && names().every(isThere), 'both listen');
  const [database = '', control = ''] = names().map((name) => join(directory, name));
  symlinkSync(database, join(rundir, OVSDB_SOCKET));
  symlinkSync(control, join(rundir, `ovs-vswitchd.${pidIn(rundir)}.ctl`));
  return {
    stop() {
      for (const child of children) child.kill('SIGKILL');
      rmSync(directory, { recursive: true });
    },
  };
}

/** Number of system calls of every thread of a process in a number of seconds, from strace. */
async function callsOf(pid: number, seconds: number): Promise<Map<string, number>> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const file = join(directory, 'calls');
  try {
    const strace = spawn('strace', ['-f', '-c', '-S', 'calls', '-o', file, '-p', String(pid)], { stdio: 'ignore' });
    await delay(seconds * 1000);
    strace.kill('SIGINT');
    await once(strace, 'exit');
    const rows = readFileSync(file, 'utf8').matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$/gm);
    const counted = [...rows].map(([, count, name]) => [name ?? '', Number(count)] as const);
    const calls = new Map(counted.filter(([name]) => name !== 'total'));
    console.error(`# in ${seconds} s: ${[...calls].map(([name, count]) => `${name} ${count}`).join(', ')}`);
    return calls;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const total = (calls: ReadonlyMap<string, number>): number =>
  [...calls.values()].reduce((sum, count) => sum + count, 0);
