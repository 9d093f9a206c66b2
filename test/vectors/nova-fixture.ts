import { CpuSet } from '../../model/cpu-set.ts';
import type { CellRoom } from '../../model/placement/guest-cells.ts';

/** The words of the Nova vectors, and what they stand for in the model. */

export interface NovaCell {
  readonly id: number;
  readonly pinned: readonly number[];
  readonly siblings: readonly (readonly number[])[];
  readonly memoryMiB: number;
  readonly memoryUsedMiB: number;
  /** In the pinning vectors. */
  readonly dedicatedCpus?: readonly number[];
  /** In the vSwitch vectors. */
  readonly cpus?: readonly number[];
  readonly physnets?: readonly string[];
  readonly tunneled?: boolean;
}

export interface NovaGuest {
  readonly cpuPolicy: string;
  readonly memoryMiB: number;
  readonly threadPolicy?: string | null;
  readonly dedicatedVcpus?: readonly number[];
  readonly sharedVcpus?: readonly number[];
  readonly vcpus?: readonly number[];
  readonly hostCell?: number;
  readonly pins?: Readonly<Record<string, number>>;
  readonly emulatorCpus?: readonly number[];
}

/** The host cell as room for whole cores: what is not pinned is free. */
export function roomOf(cell: NovaCell): CellRoom {
  const cpus = CpuSet.of([...(cell.dedicatedCpus ?? cell.cpus ?? [])]);
  return {
    id: cell.id,
    free: cpus.minus(CpuSet.of([...cell.pinned])),
    cores: cell.siblings
      .map((core) => CpuSet.of([...core]))
      .filter((core) => core.intersects(cpus))
      .sort((a, b) => (a.first ?? 0) - (b.first ?? 0)),
  };
}

/** Threads per core of the host, by its largest core. */
export function threadsOf(cells: readonly NovaCell[]): number {
  return Math.max(1, ...cells.flatMap(({ siblings }) => siblings.map((core) => core.length)));
}

/** Nova asks a cell for the guest cell's memory out of all the cell has, or with limits out of what is left of it. */
export function memoryFits(guest: NovaGuest, cell: NovaCell, ramRatio: number | undefined): boolean {
  if (guest.memoryMiB > cell.memoryMiB) return false;
  return ramRatio === undefined || cell.memoryUsedMiB + guest.memoryMiB <= cell.memoryMiB * ramRatio;
}
