import { existsSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const THREAD_TIME = '/proc/thread-self/schedstat';
/**
 * Milliseconds of CPU time that a piece of work took in this thread. Other work of the machine is not counted, nor that of
 * the runtime's other threads, which compile and collect the garbage of earlier work.
 */
export function processorTime(work: () => unknown): number {
  const before = threadMilliseconds();
  work();
  return threadMilliseconds() - before;
}
/** The same of work that waits: with whatever else this thread does meanwhile. */
export async function processorTimeOf(work: () => Promise<unknown>): Promise<number> {
  const before = threadMilliseconds();
  await work();
  return threadMilliseconds() - before;
}
/** The minimum of several runs: the first ones compile. */
export function leastProcessorTime(work: () => unknown, runs = 5): number {
  return Math.min(...Array.from({ length: runs }, () => processorTime(work)));
}
/** CPU time of this thread, counted at the ticks of the kernel’s timer (4 ms); of all threads, where it counts none by thread. */
function threadMilliseconds(): number {
  if (!existsSync(THREAD_TIME)) {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
  const [nanoseconds = ''] = readFileSync(THREAD_TIME, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

/** Milliseconds that a process's main thread could run and had to wait for a processor; 0 where the kernel counts none. */
export function processorWaitMs(pid: number): number {
  const path = `/proc/${pid}/schedstat`;
  return existsSync(path) ? Number(readFileSync(path, 'utf8').split(' ')[1]) / 1e6 : 0;
}

setFlagsFromString('--expose-gc');
/** Collects all garbage of this process at once, so that the remaining memory can be measured. */
export const collectGarbage = runInNewContext('gc') as () => void;
