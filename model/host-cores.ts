import { CpuSet, unionOf } from './cpu-set.ts';
import { type Host, HostError, wholeCoresTouching } from './host.ts';

/**
 * A core whose number of threads differs from that of the host's first core, or undefined if all are equal. Hybrid
 * processors have such cores, and so do hosts with single threads offline.
 */
export function unevenCore(host: Host): CpuSet | undefined {
  const threads = host.cores[0]?.size;
  return host.cores.find((core) => core.size !== threads);
}

/**
 * CPUs that are missing from cores with fewer threads than most: where the threads of the other cores are all the same
 * distances apart, the CPU at that distance is offline if the host does not have it. Empty on a hybrid processor.
 */
export function missingThreads({ cores, online }: Host): CpuSet {
  const most = Math.max(...cores.map(({ size }) => size));
  const distances = cores.filter(({ size }) => size === most).map((core) => [...core].map((id) => id - core.first!));
  const [pattern = []] = distances;
  if (distances.some((other) => other.join() !== pattern.join())) return CpuSet.EMPTY;
  const missing = cores
    .filter(({ size }) => size < most)
    .map((core) => {
      // The lowest place where the threads that are left fit the pattern; its other threads must not exist elsewhere.
      const starts = pattern
        .map((distance) => core.first! - distance)
        .filter((start) => start >= 0)
        .reverse();
      const whole = starts.map((start) => CpuSet.of(pattern.map((distance) => start + distance)));
      return whole.find((cpus) => core.isSubsetOf(cpus) && !cpus.minus(core).intersects(online))?.minus(core);
    });
  return missing.includes(undefined) ? CpuSet.EMPTY : unionOf(missing.filter((cpus) => cpus !== undefined));
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
