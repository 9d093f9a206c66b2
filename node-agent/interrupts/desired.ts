import type { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import type { Knob } from './knobs.ts';

/** The CPUs of the machine, as far as they decide where the kernel's work may run. */
export interface Cpus {
  readonly online: CpuSet;
  /** Owned by containers, or about to be. */
  readonly owned: CpuSet;
  /** CPUs without an owner that other work should leave alone: those of poll mode drivers, and of isolcpus. */
  readonly quiet: CpuSet;
  readonly cells: Host['cells'];
  /** CPUs of isolated cpuset partitions, which the kernel leaves out of kernel threads' CPUs. */
  readonly partitions: CpuSet;
}

/** The nearest CPUs without an owner: those of the NUMA node, else of all. Empty if every CPU has an owner. */
export function sharedCpus({ online, owned, quiet, cells }: Cpus, cell: number | undefined): CpuSet {
  const free = online.minus(owned);
  const shared = free.minus(quiet).isEmpty ? free : free.minus(quiet);
  const near = cells.find(({ id }) => id === cell)?.cpus.intersect(shared);
  return near === undefined || near.isEmpty ? shared : near;
}

/**
 * The value of a knob, from its original and the owners alone, so that it widens again with each release. Undefined if
 * no CPU is left: the kernel's work must run somewhere.
 */
export function desiredCpus(knob: Pick<Knob, 'cell' | 'isOfVm'>, original: CpuSet, cpus: Cpus): CpuSet | undefined {
  if (cpus.owned.isEmpty) return original;
  const rest = original.minus(cpus.owned);
  if (!knob.isOfVm && rest.equals(original)) return original;
  if (!knob.isOfVm && rest.intersects(cpus.online)) return rest;
  const shared = sharedCpus(cpus, knob.cell);
  return shared.isEmpty ? undefined : shared;
}
