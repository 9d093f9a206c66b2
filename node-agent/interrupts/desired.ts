import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import type { Knob, KnobKind } from './knobs.ts';

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

/** About 200 of a CPU's 256 vectors on x86 are for devices; the rest is a reserve for managed interrupts. */
export const MAX_VECTORS = 150;

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
  const isUnchanged = !original.intersects(cpus.owned);
  if (isUnchanged && !knob.isOfVm) return original;
  if (cpus.owned.isEmpty) return original;
  const rest = original.minus(cpus.owned);
  if (!knob.isOfVm && rest.intersects(cpus.online)) return rest;
  const shared = sharedCpus(cpus, knob.cell);
  return shared.isEmpty ? undefined : shared;
}

/** Those with vectors left: of the target, else of all shared CPUs. Empty if none has. */
export function withVectors(target: CpuSet, shared: CpuSet, used: ReadonlyMap<number, number>): CpuSet {
  const withRoom = (cpus: CpuSet) => CpuSet.of([...cpus].filter((cpu) => (used.get(cpu) ?? 0) < MAX_VECTORS));
  const near = withRoom(target);
  return near.isEmpty ? withRoom(shared) : near;
}

/** Error codes by which kernels say that a mask is theirs: EIO before Linux 6.11, then EPERM. */
const MANAGED: ReadonlySet<string> = new Set(['EPERM', 'EIO', 'EROFS', 'EACCES']);

export function isManagedError(kind: KnobKind, code: string): boolean {
  return kind === 'irq' && MANAGED.has(code);
}
