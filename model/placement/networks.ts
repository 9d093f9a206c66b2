import { cpuListText, numaNodesText } from '../amounts.ts';
import { CpuSet } from '../cpu-set.ts';
import { type Host, wholeCoresWithin } from '../host.ts';
import { lastingCpus } from '../kubelet/pod-request.ts';
import { type NodeRooms, outOfReach } from '../networks/reach.ts';
import {
  cellsOfNetwork,
  locatedNetworks,
  networkNeedText,
  type PlacementHost,
  type PlacementNeeds,
  type PredictedHost,
} from './needs.ts';
import { freeCores, type Refusal, refusal } from './refusal.ts';

/** Ids, ascending. */
export function cellsTouched(host: Host, cpus: CpuSet): number[] {
  return host.cells.filter((cell) => cell.cpus.intersects(cpus)).map((cell) => cell.id);
}

type Located = ReturnType<typeof locatedNetworks>[number];

/**
 * Near the required networks, on a node that can place the pod there (see unfitForNetworks). As in Nova, a network that
 * the node lacks, or of unknown place, does not constrain the CPUs, and any of a network's NUMA nodes will do. A guest
 * with one cell needs all its CPUs near every network; one that sees its NUMA nodes, one of them for each.
 * Source: nova/virt/hardware.py, _numa_cells_support_network_metadata.
 */
export function networkVerdict(
  needs: PlacementNeeds,
  node: PredictedHost,
  cpus: CpuSet,
): Refusal | { readonly warnings: readonly string[] } {
  const located = locatedNetworks(needs, node);
  const warnings = needs.networks
    .filter((need) => need.affinity === 'required' && !located.some((network) => network.need === need))
    .map((need) => {
      const isPresent = cellsOfNetwork(node.networks, need) !== undefined;
      return `${networkNeedText(need)}: ${isPresent ? 'its NUMA node is not known here' : 'not known here'}; no affinity`;
    });
  // Without exclusive CPUs a pod runs on the whole shared pool, wherever its networks are.
  if (located.length === 0 || cpus.isEmpty) return { warnings };

  const touched = CpuSet.of(cellsTouched(node.host, cpus));
  const satisfied = ({ cells }: Located) => (needs.spansCells ? touched.intersects(cells) : touched.isSubsetOf(cells));
  const missed = located.find((network) => !satisfied(network));
  return missed ? elsewhere(needs, node, missed, cpus) : { warnings };
}

function elsewhere(needs: PlacementNeeds, node: PredictedHost, { need, cells }: Located, cpus: CpuSet): Refusal {
  const threads = node.host.threadsPerCore;
  const neededCores = Math.ceil(cpus.size / threads);
  const free = freeCores(node).filter((core) => core.isSubsetOf(cpusOfCells(node.host, cells)));
  const text =
    `${networkNeedText(need)} is on ${numaNodesText(cells)}, where ${free.length} of ${neededCores} needed whole cores are free; ` +
    `the kubelet would give ${cpuListText(cpus)} on ${numaNodesText(cellsTouched(node.host, cpus).join(','))}` +
    (needs.request.containers.some(({ devices }) => devices.size > 0) ? '' : ' (the pod asks for no device of it)');
  return refusal('network-elsewhere', text, (neededCores - free.length) * threads);
}

/** Unknown NUMA nodes add none. */
export function cpusOfCells(host: Host, cells: CpuSet): CpuSet {
  return host.cells.reduce((all, cell) => (cells.has(cell.id) ? all.union(cell.cpus) : all), CpuSet.EMPTY);
}

/** Why no CPU that becomes free on the node could place the pod near all its required networks. */
export function unfitForNetworks(needs: PlacementNeeds, node: PlacementHost): Refusal | undefined {
  const located = locatedNetworks(needs, node).map(({ need, cells }) => ({ text: networkNeedText(need), cells }));
  if (located.length === 0) return undefined;
  const guest = { cpus: lastingCpus(needs.request), spansCells: needs.spansCells ?? false };
  const wholeCores = needs.wholeCores || node.wholeCoresOnly;
  const rooms = roomsOf(node.host, node.reserved, wholeCores);
  const obstacle = outOfReach(guest, located, { rooms, alignment: node.alignment });
  return obstacle && refusal(obstacle.reason, obstacle.text, obstacle.excess);
}

/** By NUMA node, on an empty node. */
export function roomsOf(host: Host, reserved: CpuSet, wholeCores: boolean): NodeRooms['rooms'] {
  const free = host.online.minus(reserved);
  const usable = wholeCores ? wholeCoresWithin(host, free) : free;
  return new Map(host.cells.map(({ id, cpus }) => [id, cpus.intersect(usable).size]));
}
