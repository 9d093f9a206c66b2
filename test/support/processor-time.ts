/**
 * Milliseconds of processor time that a piece of work took in this process. What else the machine does is not counted;
 * what the runtime does for it (compiling, collecting garbage) is.
 */
export function processorTime(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The least of several runs: the first ones compile. */
export function leastProcessorTime(work: () => unknown, runs = 5): number {
  return Math.min(...Array.from({ length: runs }, () => processorTime(work)));
}
