import type { CpuSet } from '../cpu-set.ts';

/** Two VMs on one host that are pinned to some of the same CPUs. */
export interface Overlap<T> {
  readonly a: T;
  readonly b: T;
  readonly cpus: CpuSet;
}

/**
 * The overlaps among VMs, each pair once. The caller leaves out VMs that are not pinned, because they overlap with all
 * others.
 */
export function overlaps<T>(vms: readonly { readonly vm: T; readonly cpus: CpuSet }[]): readonly Overlap<T>[] {
  return vms.flatMap((a, i) =>
    vms.slice(i + 1).flatMap((b) => {
      const cpus = a.cpus.intersect(b.cpus);
      return cpus.isEmpty ? [] : [{ a: a.vm, b: b.vm, cpus }];
    }),
  );
}
