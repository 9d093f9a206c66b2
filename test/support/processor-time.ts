/**
 * Milliseconds of CPU time that a piece of work took in this process. Other work of the machine is not counted; that of
 * the runtime (compiling, collecting garbage) is.
 */
export function processorTime(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The minimum of several runs: the first ones compile. */
export function leastProcessorTime(work: () => unknown, runs = 5): number {
  return Math.min(...Array.from({ length: runs }, () => processorTime(work)));
}
