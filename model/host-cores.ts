import { CpuSet, unionOf } from './cpu-set.ts';
import type { Host } from './host.ts';

/**
 * CPUs that are missing from cores with fewer threads than most: where the threads of the other cores have equal
 * distances, the CPU at that distance is offline if the host does not have it. Empty on a hybrid processor.
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
