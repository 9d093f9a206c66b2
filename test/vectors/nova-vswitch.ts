import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { isPredicted, type NetworkNeed, type PlacementNeeds, preparedHost } from '../../model/placement/needs.ts';
import { networkVerdict } from '../../model/placement/networks.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

interface VswitchCase {
  readonly name: string;
  readonly hostCells: readonly NovaCell[];
  readonly request: {
    readonly guestCells: readonly unknown[] | null;
    readonly chosenHostCells?: readonly number[];
    readonly physnets: readonly string[];
    readonly tunneled: boolean;
  };
  readonly expected: { readonly fits: boolean; readonly networkAcceptableCellSets?: readonly (readonly number[])[] };
}
/**
 * nova-vswitch-cases.json: which sets of host cells are near the networks of a guest. The same question is asked of the
 * extender about each set of as many cells: whether a guest that sees the NUMA nodes of its CPUs is near its networks
 * there. Nova chooses the cells; here the kubelet does, so which of the acceptable sets it is, is not compared.
 */
export const run: Adapter = (content) =>
  (content as VswitchCase[]).map((one) => ({ name: one.name, check: () => check(one) }));
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
  const required = { name: '', affinity: 'required' } as const;
  const networks: NetworkNeed[] = physnets.map((physnet) => ({ ...required, kind: 'physnet', physnet }));
  if (tunneled) networks.push({ ...required, kind: 'tunnel' });
  const request = { uid: 'guest', guaranteed: true, containers: [] };
  const needs: PlacementNeeds = { request, networks, spansCells: true };
  const node = preparedHost(reportOf(hostCells));
  const cpus = unionOf(hostCells.filter(({ id }) => chosen.includes(id)).map(guestCpusOf));
  if (!isPredicted(node)) throw new Error('the kubelet of the vectors must be predictable');
  return !('kind' in networkVerdict(needs, node, cpus));
}
/** All sets of this many ids, in the order of the ids. */
function subsetsOf(ids: readonly number[], size: number): number[][] {
  if (size === 0) return [[]];
  return ids.flatMap((id, index) => subsetsOf(ids.slice(index + 1), size - 1).map((rest) => [id, ...rest]));
}

/** As the Nova vectors describe it. */
export interface NovaCell {
  readonly id: number;
  readonly pinned: readonly number[];
  readonly siblings: readonly (readonly number[])[];
  /** Those that guests can have to themselves. */
  readonly cpus: readonly number[];
  /** In the vSwitch vectors. */
  readonly physnets?: readonly string[];
  readonly tunneled?: boolean;
}
export const guestCpusOf = ({ cpus }: NovaCell): CpuSet => CpuSet.of(cpus);
/** The cores of a host cell with CPUs for guests. */
export function coresOf(cell: NovaCell): CpuSet[] {
  return cell.siblings.map((core) => CpuSet.of(core)).filter((core) => core.intersects(guestCpusOf(cell)));
}
/** The host as its agent would report it: a guest is inside one cell, and CPUs that are not for guests are reserved. */
export function reportOf(cells: readonly NovaCell[]): HostReport {
  const online = unionOf(cells.flatMap(coresOf));
  const pinned = CpuSet.of(cells.flatMap(({ pinned }) => pinned)).intersect(online);
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
