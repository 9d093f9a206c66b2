import type { CpuSet } from './cpu-set.ts';
import { type Host, HostError, wholeCoresTouching } from './host.ts';

/**
 * A core whose number of threads differs from that of the host's first core, or undefined if all are equal. Hybrid
 * processors have such cores, and so do hosts with single threads offline.
 */
export function unevenCore(host: Host): CpuSet | undefined {
  const threads = host.cores[0]?.size;
  return host.cores.find((core) => core.size !== threads);
}

/** The first core of which the CPUs include some threads, but not all. */
export function splitCore(host: Host, cpus: CpuSet): CpuSet | undefined {
  return host.cores.find((core) => core.intersects(cpus) && !core.isSubsetOf(cpus));
}

/** Whether the CPUs are whole cores: none of their cores has another online thread. */
export function isWholeCores(host: Host, cpus: CpuSet): boolean {
  return wholeCoresTouching(host, cpus).equals(cpus);
}

/**
 * Checks that the host has all of the CPUs online.
 * @param what the name of the CPUs, for the message: `reserved CPUs`
 * @throws HostError naming the lowest missing CPU
 */
export function assertOnline(host: Host, cpus: CpuSet, what: string): void {
  const missing = cpus.minus(host.online).first;
  if (missing === undefined) return;
  throw new HostError(
    `${what} ${cpus.brief} name CPU ${missing}, which is not online; the host has CPUs ${host.online.brief}`,
  );
}
