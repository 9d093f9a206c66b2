import { CpuSet, unionOf } from '../cpu-set.ts';
import { splitCores } from '../host.ts';
import { cellsOfNetwork, type PlacementHost, type PlacementNeeds, type PredictedHost } from './needs.ts';
import { cellsTouched, cpusOfCells } from './networks.ts';

/** They sum to 1. */
const WEIGHTS = { keepsNicCells: 3 / 6, packs: 2 / 6, keepsCores: 1 / 6 } as const;
/**
 * If no network is preferred. The extender's score counts five times as much as one of kube-scheduler's: with more,
 * packing would outweigh a soft spread constraint or anti-affinity of the user.
 */
const HOUSEKEEPING = 0.6;
/** Weight of nearness if a network is preferred: a node that is better by this much wins whatever the rest is. */
const NEARNESS = 0.8;
/** Of a network that is on the node but away from the CPUs. */
const ON_NODE = 0.5;

/** Factor for guests with threads on a node without SMT: the worst node with SMT is as good. */
const WITHOUT_SMT = 1 - HOUSEKEEPING;

/**
 * 0 to 1: first near the preferred networks, or on a node that has them. Then by avoiding NUMA nodes of other NICs,
 * filling full nodes so that large VMs find empty ones, and breaking no whole core. Guests with threads prefer nodes
 * with SMT.
 */
export function scoreOf(needs: PlacementNeeds, node: PredictedHost, cpus: CpuSet): number {
  const { host, state } = node;
  const keepsNicCells = 1 - share(nicCpus(needs, node).intersect(cpus).size, cpus.size);
  const packs = share(host.online.size - state.defaultSet.size + cpus.size, host.online.size);
  const keepsCores = 1 - share(brokenCores(node, cpus), host.cores.length);
  const housekeeping = WEIGHTS.keepsNicCells * keepsNicCells + WEIGHTS.packs * packs + WEIGHTS.keepsCores * keepsCores;
  const near = nearness(needs, node, cpus);
  const score =
    near === undefined
      ? 1 - HOUSEKEEPING + HOUSEKEEPING * housekeeping
      : NEARNESS * near + (1 - NEARNESS) * housekeeping;
  const lacksThreads = (needs.guestThreads ?? 1) > 1 && host.threadsPerCore === 1;
  return lacksThreads ? WITHOUT_SMT * score : score;
}

/** Average nearness of the preferred networks, from 0 (the node has none) to 1; undefined if none is preferred. */
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

/** Of some network, and of none that this pod has an affinity to. */
function nicCpus(needs: PlacementNeeds, { host, networks }: PlacementHost): CpuSet {
  const all = [...networks.physnets.values(), networks.tunnel ?? CpuSet.EMPTY];
  // A network on every NUMA node distinguishes none of them.
  const telling = all.filter((cells) => cells.size < host.cells.length);
  const related = needs.networks.filter(({ affinity }) => affinity !== 'none');
  const affinityCells = unionOf(related.map((need) => cellsOfNetwork(networks, need) ?? CpuSet.EMPTY));
  return cpusOfCells(host, unionOf(telling).minus(affinityCells));
}

function brokenCores({ host, state }: PredictedHost, cpus: CpuSet): number {
  return splitCores(host, cpus).filter((core) => core.isSubsetOf(state.defaultSet)).length;
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(1, part / whole);
}
