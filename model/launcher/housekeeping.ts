import type { CpuSet } from '../cpu-set.ts';

export interface PinnedContainer {
  /** The cpuset of the container. This code does not change it. */
  readonly container: CpuSet;
  /** All CPUs that vCPUs are pinned to. */
  readonly vcpus: CpuSet;
  /** All CPUs that IO threads are pinned to; empty if they are not pinned. */
  readonly ioThreads: CpuSet;
}

export interface Housekeeping {
  /** CPUs for the emulator's threads; never empty. */
  readonly emulator: CpuSet;
  /**
   * The cpuset of the housekeeping cgroup. virt-handler moves every thread except vCPUs into it, so it must contain the
   * CPUs of the IO threads, which otherwise could not keep their pins.
   */
  readonly cgroup: CpuSet;
}

/**
 * CPUs for the emulator's threads: all CPUs of the container that no vCPU and no IO thread is pinned to, so that the
 * threads use the CPU added for whole cores. If only CPUs of IO threads are left (KubeVirt puts shared IO threads on
 * the emulator's own CPU), both share them.
 *
 * Undefined if vCPUs have every CPU of the container: the emulator is then not isolated.
 */
export function housekeeping({ container, vcpus, ioThreads }: PinnedContainer): Housekeeping | undefined {
  const free = container.minus(vcpus);
  if (free.isEmpty) return undefined;
  const alone = free.minus(ioThreads);
  const emulator = alone.isEmpty ? free : alone;
  return { emulator, cgroup: emulator.union(ioThreads.intersect(container)) };
}
