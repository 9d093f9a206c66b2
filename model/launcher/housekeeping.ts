import type { CpuSet } from '../cpu-set.ts';

export interface PinnedContainer {
  /** The cpuset of the container, which nothing here changes. */
  readonly container: CpuSet;
  /** All CPUs that vCPUs are pinned to. */
  readonly vcpus: CpuSet;
  /** All CPUs that IO threads are pinned to; empty if they are not pinned. */
  readonly ioThreads: CpuSet;
}

export interface Housekeeping {
  /** Where the emulator's threads belong. Never empty. */
  readonly emulator: CpuSet;
  /**
   * The cpuset of the housekeeping cgroup. virt-handler moves every thread that is no vCPU into it, so it must also
   * hold the IO threads' CPUs, or their own pins could not be kept.
   */
  readonly cgroup: CpuSet;
}

/**
 * What the emulator's threads may use: all CPUs of the container that no vCPU and no IO thread is pinned to, so that
 * the CPU added for whole cores serves them instead of idling. Where only IO threads' CPUs are left (KubeVirt puts
 * shared IO threads on the emulator's own CPU) the two share them.
 *
 * Undefined if vCPUs have every CPU of the container: then the emulator is not isolated and there is nothing to keep.
 */
export function housekeeping({ container, vcpus, ioThreads }: PinnedContainer): Housekeeping | undefined {
  const free = container.minus(vcpus);
  if (free.isEmpty) return undefined;
  const alone = free.minus(ioThreads);
  const emulator = alone.isEmpty ? free : alone;
  return { emulator, cgroup: emulator.union(ioThreads.intersect(container)) };
}

/** The emulator's CPUs alone, or undefined if no CPU of the container is free of vCPUs. */
export function housekeepingSet(container: CpuSet, vcpus: CpuSet, ioThreads: CpuSet): CpuSet | undefined {
  return housekeeping({ container, vcpus, ioThreads })?.emulator;
}
