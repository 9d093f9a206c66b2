import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OVSDB_SOCKET } from '../../node-agent/open-vswitch/ovsdb/follow.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startManyThreads } from '../support/c-program.ts';
import { bundle, cpuSecondsOf, memoryOf } from '../support/process.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';
import { replaceCheckpoint, startAgentProcess } from './agent-process.ts';

/** Seconds in which V8 releases memory before a process counts as idle. */
const REST = 75;
/** Calls a second: fewer than a tenth of those that a loop with a period of one second makes on the same machine. */
const MAX_SYSTEM_CALLS = 8;
const MAX_RESIDENT_MEGABYTES = 80;

/** The bundled agent with every duty of a host while nothing changes: its system calls, and its resident memory. */
export async function idleAgent({ idle }: BenchSettings): Promise<BenchResult[]> {
  const daemons = await startManyThreads();
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

/** Changes in an hour if a pod starts or ends every two seconds. */
const CHANGES = 1800;
/** Milliseconds between two changes in this bench. */
const PAUSE_MILLISECONDS = 20;
/** Seconds for which the CPU time of the idle agent is measured. */
const IDLE = 30;
const MEMORY_BOUND = 60;
const IDLE_BOUND = 0.2;

/** The agent's private memory in MB after an hour of changes, and its cost when nothing changes. */
export async function longRun(): Promise<BenchResult[]> {
  const agent = await startAgentProcess();
  try {
    const { pid } = agent.process;
    const memory: number[] = [];
    const changes = paced(CHANGES);
    for (let change = 1; change <= changes; change++) {
      replaceCheckpoint(agent.kubeletDir, change);
      await delay(PAUSE_MILLISECONDS);
      if (change % (changes / 6) === 0) memory.push(memoryOf(pid).private / 1e6);
    }
    await delay(paced(REST, 40) * 1000);
    const before = cpuSecondsOf(pid);
    await delay(IDLE * 1000);
    const idle = ((cpuSecondsOf(pid) - before) / IDLE) * 100;
    const last = memoryOf(pid).private / 1e6;
    memory.push(last);
    return [
      {
        name: 'node-agent.private-megabytes-after-an-hour',
        ratio: last,
        spread: [Math.min(...memory), Math.max(...memory)],
        bound: `<= ${MEMORY_BOUND}`,
        holds: last <= MEMORY_BOUND,
      },
      summary('node-agent.idle-percent-of-a-core', [idle], { most: IDLE_BOUND }),
    ];
  } finally {
    await agent.stop();
  }
}
