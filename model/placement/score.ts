import { CpuSet } from '../cpu-set.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { cellsOfNetwork, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { cellsTouched, cpusOfCells } from './networks.ts';

/** What counts how much of what is only housekeeping. They sum to 1. */
const WEIGHTS = { keepsNicCells: 3 / 6, packs: 2 / 6, keepsCores: 1 / 6 } as const;
/**
 * The part of the score that housekeeping decides where no network is preferred. The extender's score counts five times
 * as much as one of kube-scheduler's: at more than this, packing outweighs a soft spread or anti-affinity of the user's.
 */
const HOUSEKEEPING = 0.6;
/** What nearness counts where a network is preferred: a node that is better by this is better whatever else is. */
const NEARNESS = 0.8;
/** A network that is on the node, away from the CPUs: farther than it could be, and better than no such network at all. */
const ON_NODE = 0.5;

/**
 * How good a placement is, from 0 to 1: it is near the networks that are preferred, or at least on a node that has them;
 * then it leaves the NUMA nodes of NICs to those who need them, packs full nodes fuller so that large VMs find empty ones,
 * and breaks no whole core.
 */
export function scoreOf(needs: PlacementNeeds, node: PlacementHost, state: KubeletState, cpus: CpuSet): number {
  const parts = {
    keepsNicCells: 1 - share(nicCpus(needs, node).intersect(cpus).size, cpus.size),
    packs: share(node.host.online.size - state.defaultSet.size + cpus.size, node.host.online.size),
    keepsCores: 1 - share(brokenCores(node, state, cpus), node.host.cores.length),
  };
  const housekeeping =
    WEIGHTS.keepsNicCells * parts.keepsNicCells + WEIGHTS.packs * parts.packs + WEIGHTS.keepsCores * parts.keepsCores;
  const near = nearness(needs, node, cpus);
  if (near === undefined) return 1 - HOUSEKEEPING + HOUSEKEEPING * housekeeping;
  return NEARNESS * near + (1 - NEARNESS) * housekeeping;
}

/** How near the preferred networks are on the average, from 0 (the node has none) to 1; undefined if none is preferred. */
function nearness(needs: PlacementNeeds, node: PlacementHost, cpus: CpuSet): number | undefined {
  const preferred = needs.networks.filter(({ affinity }) => affinity === 'preferred');
  if (preferred.length === 0) return undefined;
  const touched = CpuSet.of(cellsTouched(node.host, cpus));
  const sum = preferred.reduce((total, need) => {
    const cells = cellsOfNetwork(node.networks, need);
    if (cells === undefined) return total;
    return total + (!cells.isEmpty && touched.isSubsetOf(cells) ? 1 : ON_NODE);
  }, 0);
  return sum / preferred.length;
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
