import { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { cellsOfNetwork, type NetworkNeed, networkText, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { type Refusal, refusal } from './refusal.ts';
import { freeCores } from './whole-cores.ts';

/** The NUMA nodes that some of the CPUs are on, ascending. */
export function cellsTouched(host: Host, cpus: CpuSet): number[] {
  return host.cells.filter((cell) => cell.cpus.intersects(cpus)).map((cell) => cell.id);
}

interface Located {
  readonly need: NetworkNeed;
  /** NUMA node ids; never empty. */
  readonly cells: CpuSet;
}

/**
 * Whether CPUs are where the required networks are, of a pod that the node can bring near them (see unfitForNetworks).
 *
 * As in Nova, a network that the node does not have, or of which it does not know the NUMA node, constrains nothing
 * (it is warned about), and one that is on several nodes is satisfied by any of them. A guest of one cell has to have
 * all its CPUs there for every network; a guest that sees the nodes its CPUs span must have touched one for each.
 *
 * Source: nova/virt/hardware.py, _numa_cells_support_network_metadata.
 */
export function networkVerdict(
  needs: PlacementNeeds,
  node: PlacementHost,
  cpus: CpuSet,
  state: KubeletState,
): Refusal | { readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const located: Located[] = [];
  for (const need of needs.networks) {
    if (need.affinity !== 'required') continue;
    const cells = cellsOfNetwork(node.networks, need);
    if (cells && !cells.isEmpty) located.push({ need, cells });
    else
      warnings.push(
        `${networkText(need)}: ${cells ? 'its NUMA node is not known here' : 'not known here'}; no affinity`,
      );
  }
  // Without exclusive CPUs a pod runs on the whole shared pool, wherever its networks are.
  if (located.length === 0 || cpus.isEmpty) return { warnings };

  const touched = CpuSet.of(cellsTouched(node.host, cpus));
  const satisfied = ({ cells }: Located) => (needs.spansCells ? touched.intersects(cells) : touched.isSubsetOf(cells));
  const missed = located.find((network) => !satisfied(network));
  if (!missed) return { warnings };
  return elsewhere(needs, node, state, missed, cpus);
}

/** Names the interface, where it is, and what is short there. */
function elsewhere(
  needs: PlacementNeeds,
  node: PlacementHost,
  state: KubeletState,
  { need, cells }: Located,
  cpus: CpuSet,
): Refusal {
  const threads = node.host.threadsPerCore;
  const wanted = Math.ceil(cpus.size / threads);
  const free = freeCores(node, state).filter((core) => core.isSubsetOf(cpusOfCells(node.host, cells)));
  const text =
    `${networkText(need)} is on NUMA node ${cells}, where ${free.length} whole cores are free of ${wanted} needed; ` +
    `the kubelet would give CPUs ${cpus} on NUMA node ${cellsTouched(node.host, cpus).join(',')}` +
    (needs.request.containers.some(({ devices }) => devices.size > 0) ? '' : ' (the pod asks for no device of it)');
  const details = { resource: 'cores', where: cells.toArray(), wanted, available: free.length } as const;
  return refusal('network-elsewhere', text, details);
}

/** The online CPUs of the given NUMA nodes; NUMA nodes that the host does not have add none. */
export function cpusOfCells(host: Host, cells: CpuSet): CpuSet {
  return host.cells.reduce((all, cell) => (cells.has(cell.id) ? all.union(cell.cpus) : all), CpuSet.EMPTY);
}
