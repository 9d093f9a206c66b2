import { CpuSet } from '../cpu-set.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { cellsOfNetwork, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { cellsTouched, cpusOfCells } from './networks.ts';

/** What counts how much. They sum to 1; nearness to a preferred network outweighs all that is only housekeeping. */
const WEIGHTS = { nearness: 0.4, keepsNicCells: 0.3, packs: 0.2, keepsCores: 0.1 } as const;

/**
 * How good a placement is, from 0 to 1: it is near the networks that are preferred, leaves the NUMA nodes of NICs to
 * those who need them, packs full nodes fuller so that large VMs find empty ones, and breaks no whole core.
 */
export function scoreOf(needs: PlacementNeeds, node: PlacementHost, state: KubeletState, cpus: CpuSet): number {
  const parts = {
    nearness: nearness(needs, node, cpus),
    keepsNicCells: 1 - share(nicCpus(needs, node).intersect(cpus).size, cpus.size),
    packs: share(node.host.online.size - state.defaultSet.size + cpus.size, node.host.online.size),
    keepsCores: 1 - share(brokenCores(node, state, cpus), node.host.cores.length),
  };
  return (
    WEIGHTS.nearness * parts.nearness +
    WEIGHTS.keepsNicCells * parts.keepsNicCells +
    WEIGHTS.packs * parts.packs +
    WEIGHTS.keepsCores * parts.keepsCores
  );
}

/** The part of the preferred networks that are local; 1 if none is preferred. */
function nearness(needs: PlacementNeeds, node: PlacementHost, cpus: CpuSet): number {
  const preferred = needs.networks.filter(({ affinity }) => affinity === 'preferred');
  if (preferred.length === 0) return 1;
  const touched = CpuSet.of(cellsTouched(node.host, cpus));
  const near = preferred.filter((need) => {
    const cells = cellsOfNetwork(node.networks, need);
    return cells !== undefined && !cells.isEmpty && touched.isSubsetOf(cells);
  });
  return near.length / preferred.length;
}

/** CPUs on NUMA nodes that have a NIC of some network and of none that this pod minds. */
function nicCpus(needs: PlacementNeeds, { host, networks }: PlacementHost): CpuSet {
  const all = [...networks.physnets.values(), networks.tunnel ?? CpuSet.EMPTY];
  // A network on every NUMA node keeps none of them apart.
  const telling = all.filter((cells) => cells.size < host.cells.length);
  const nicCells = telling.reduce((sum, cells) => sum.union(cells), CpuSet.EMPTY);
  const own = needs.networks
    .filter(({ affinity }) => affinity !== 'none')
    .reduce((sum, need) => sum.union(cellsOfNetwork(networks, need) ?? CpuSet.EMPTY), CpuSet.EMPTY);
  return cpusOfCells(host, nicCells.minus(own));
}

/** Cores that were wholly free and of which only a part would be taken. */
function brokenCores({ host }: PlacementHost, state: KubeletState, cpus: CpuSet): number {
  return host.cores.filter(
    (core) => core.isSubsetOf(state.defaultSet) && core.intersects(cpus) && !core.isSubsetOf(cpus),
  ).length;
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(1, part / whole);
}
