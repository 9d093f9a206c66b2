import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { HostReport } from '../../model/kubelet/report.ts';

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
  readonly hostCell?: number;
  readonly pins?: Readonly<Record<string, number>>;
  readonly emulatorCpus?: readonly number[];
}

/** The CPUs of a host cell that guests can have to themselves. */
export function guestCpusOf(cell: NovaCell): CpuSet {
  return CpuSet.of([...(cell.dedicatedCpus ?? cell.cpus ?? [])]);
}

/** The cores of a host cell with CPUs for guests. */
export function coresOf(cell: NovaCell): CpuSet[] {
  return cell.siblings.map((core) => CpuSet.of([...core])).filter((core) => core.intersects(guestCpusOf(cell)));
}

/** The host as its agent would report it: a guest is inside one cell, and CPUs that are not for guests are reserved. */
export function reportOf(cells: readonly NovaCell[]): HostReport {
  const online = unionOf(cells.flatMap(coresOf));
  const pinned = CpuSet.of(cells.flatMap((cell) => [...cell.pinned])).intersect(online);
  const names = [...new Set(cells.flatMap(({ physnets = [] }) => physnets))];
  const idsWith = (has: (cell: NovaCell) => boolean) => `${CpuSet.of(cells.filter(has).map(({ id }) => id))}`;
  return {
    kubeletVersion: 'v1.36.2',
    cells: cells.map((cell) => ({ id: cell.id, cpus: `${unionOf(coresOf(cell))}` })),
    cores: cells.flatMap((cell) => coresOf(cell).map((core) => `${core}`)),
    reserved: `${online.minus(unionOf(cells.map(guestCpusOf)))}`,
    cpuManager: { policy: 'static' },
    topologyManager: { policy: 'single-numa-node', scope: 'container' },
    assignments: pinned.isEmpty ? [] : [{ podUID: 'others', container: 'compute', cpus: `${pinned}` }],
    physnets: names.map((name) => ({ name, cells: idsWith(({ physnets = [] }) => physnets.includes(name)) })),
    ...(cells.some(({ tunneled }) => tunneled) && { tunnel: { cells: idsWith(({ tunneled }) => tunneled === true) } }),
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
