import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { type NetworkNeed, type PlacementNeeds, preparedHost } from '../../model/placement/needs.ts';
import { networkVerdict } from '../../model/placement/networks.ts';
import { type Adapter, collect, differs, type Verdict } from './outcome.ts';

interface VswitchCase {
  readonly name: string;
  readonly hostCells: readonly NovaCell[];
  readonly request: {
    readonly guestCells: readonly unknown[] | null;
    readonly chosenHostCells?: readonly number[];
    readonly physnets: readonly string[];
    readonly tunneled: boolean;
  };
  readonly expected: {
    readonly fits: boolean;
    readonly networkAcceptableCellSets?: readonly (readonly number[])[];
  };
}
/**
 * nova-vswitch-cases.json: which sets of host cells are near the networks of a guest. The same question is asked of the
 * extender about each set of as many cells: whether a guest that sees the NUMA nodes of its CPUs is near its networks
 * there. Nova chooses the cells; here the kubelet does, so which of the acceptable sets it is, is not compared.
 */
export const run: Adapter = (content) => collect(content as VswitchCase[], ({ name }) => name, check);
function check({ hostCells, request, expected }: VswitchCase): Verdict {
  const near = (cells: readonly number[]) => isNear(hostCells, cells, request);
  if (request.chosenHostCells) return differs(near(request.chosenHostCells), expected.fits);
  const sets = subsetsOf(
    hostCells.map(({ id }) => id),
    request.guestCells?.length ?? 0,
  );
  return differs(sets.filter(near), expected.networkAcceptableCellSets);
}
function isNear(
  hostCells: readonly NovaCell[],
  chosen: readonly number[],
  { physnets, tunneled }: VswitchCase['request'],
): boolean {
  const networks: NetworkNeed[] = physnets.map((physnet) => ({
    name: '',
    kind: 'physnet',
    physnet,
    affinity: 'required',
  }));
  if (tunneled) networks.push({ name: '', kind: 'tunnel', affinity: 'required' });
  const needs: PlacementNeeds = {
    request: { uid: 'guest', guaranteed: true, containers: [] },
    networks,
    spansCells: true,
  };
  const node = preparedHost(reportOf(hostCells));
  const cpus = CpuSet.of(hostCells.filter(({ id }) => chosen.includes(id)).flatMap((cell) => [...(cell.cpus ?? [])]));
  if (node.state === undefined) throw new Error('the kubelet of the vectors must be predictable');
  return !('reason' in networkVerdict(needs, node, cpus, node.state));
}
/** All sets of this many ids, in the order of the ids. */
function subsetsOf(ids: readonly number[], size: number): number[][] {
  if (size === 0) return [[]];
  return ids.flatMap((id, index) => subsetsOf(ids.slice(index + 1), size - 1).map((rest) => [id, ...rest]));
}

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
