import { setTimeout as delay } from 'node:timers/promises';
import { type ApiGate, redirect, serverOf, startApiGate } from '../../test/faults/world/api-gate.ts';
import { replaceCheckpoint, startAgentProcess } from '../node-agent/agent-process.ts';
import { cpuSecondsOf, memoryOf } from '../support/process.ts';

/** Seconds after the start, in which V8 compiles, collects and releases memory. */
const REST = 75;
const IDLE_SECONDS = 60;
const CHANGES = 40;
/** Milliseconds between changes; longer than the agent's own window, so that each change leads to a report. */
const CHANGE_MILLIS = 500;

/** Cost of one agent, on a node with 256 CPUs and 60 pods. */
export interface AgentCost {
  readonly requestsASecond: number;
  readonly bytesASecond: number;
  readonly requestsAChange: number;
  readonly bytesAChange: number;
  /** Resident memory in bytes. */
  readonly memory: number;
  /** Share of a core while nothing changes. */
  readonly idleShare: number;
  /** Seconds of processor time. */
  readonly secondsAChange: number;
}

export async function measureAgent(): Promise<AgentCost> {
  let api: ApiGate | undefined;
  const agent = await startAgentProcess({
    async through(path) {
      api = await startApiGate(await serverOf(path));
      return redirect(path, api);
    },
  });
  try {
    const { pid } = agent.process;
    await delay(REST * 1000);
    const over = async (work: () => Promise<unknown>) => {
      api?.take();
      const before = cpuSecondsOf(pid);
      await work();
      const traffic = api?.take();
      return {
        seconds: cpuSecondsOf(pid) - before,
        requests: traffic?.requests ?? 0,
        bytes: traffic?.bytes ?? 0,
      };
    };
    const idle = await over(() => delay(IDLE_SECONDS * 1000));
    const busy = await over(async () => {
      for (let change = 1; change <= CHANGES; change++) {
        replaceCheckpoint(agent.kubeletDir, change);
        await delay(CHANGE_MILLIS);
      }
    });
    const busySeconds = (CHANGES * CHANGE_MILLIS) / 1000;
    const aChange = (measured: number, still: number) => (measured - (still / IDLE_SECONDS) * busySeconds) / CHANGES;
    return {
      requestsASecond: idle.requests / IDLE_SECONDS,
      bytesASecond: idle.bytes / IDLE_SECONDS,
      requestsAChange: aChange(busy.requests, idle.requests),
      bytesAChange: aChange(busy.bytes, idle.bytes),
      memory: memoryOf(pid).rss,
      idleShare: idle.seconds / IDLE_SECONDS,
      secondsAChange: aChange(busy.seconds, idle.seconds),
    };
  } finally {
    await agent.stop();
    await api?.stop();
  }
}
