import { CpuSet } from '../../model/cpu-set.ts';
import { type NetworkNeed, type PlacementNeeds, preparedHost } from '../../model/placement/needs.ts';
import { networkVerdict } from '../../model/placement/networks.ts';
import { type NovaCell, reportOf } from './nova-fixture.ts';
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
