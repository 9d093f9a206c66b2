import type { CpuSet } from './cpu-set.ts';
import { type Host, HostError, wholeCoresTouching } from './host.ts';

/**
 * A core with another number of threads than the host's first core, or undefined where all are alike. Hybrid parts have
 * such, and hosts where single threads are offline.
 */
export function unevenCore(host: Host): CpuSet | undefined {
  const threads = host.cores[0]?.size;
  return host.cores.find((core) => core.size !== threads);
}

/** Whether the CPUs are whole cores: no core of theirs has another online thread. */
export function isWholeCores(host: Host, cpus: CpuSet): boolean {
  return wholeCoresTouching(host, cpus).equals(cpus);
}

/**
 * Refuses CPUs that the host does not have online.
 * @param what what they are, for the message: `reserved CPUs`
 * @throws HostError naming the lowest of them
 */
export function assertOnline(host: Host, cpus: CpuSet, what: string): void {
  const missing = cpus.minus(host.online).first;
  if (missing === undefined) return;
  throw new HostError(
    `${what} ${cpus.brief} name CPU ${missing}, which is not online; the host has CPUs ${host.online.brief}`,
  );
}
