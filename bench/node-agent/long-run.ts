import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { paced } from '../support/pace.ts';
import { memoryOf } from '../support/process.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { startAgentProcess } from './agent-process.ts';
import { replaceCheckpoint } from './checkpoint.ts';

/** Changes in an hour if a pod starts or ends every two seconds. */
const CHANGES = 1800;
/** Milliseconds between two changes in this bench. */
const PACE = 20;
/**
 * Seconds in which V8 releases memory before the agent counts as idle, and seconds for which its CPU time is measured.
 */
const REST = 75;
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
      await delay(PACE);
      if (change % (changes / 6) === 0) memory.push(memoryOf(pid).private / 1e6);
    }
    await delay(paced(REST, 40) * 1000);
    const before = cpuSeconds(pid);
    await delay(IDLE * 1000);
    const idle = ((cpuSeconds(pid) - before) / IDLE) * 100;
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

/**
 * CPU seconds of every thread of a process, from the scheduler's own count, because ticks are too coarse for an idle
 * process.
 */
function cpuSeconds(pid: number): number {
  const task = `/proc/${pid}/task`;
  const nanos = readdirSync(task).map((tid) => Number(readFileSync(`${task}/${tid}/schedstat`, 'utf8').split(' ')[0]));
  return nanos.reduce((sum, one) => sum + one, 0) / 1e9;
}
