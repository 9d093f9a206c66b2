import { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { isWholeCores } from '../host-cores.ts';

/** What the kubelet and its CPUs are like at the moment. */
export interface HintingNode {
  readonly host: Host;
  /** Of the topology manager, as the kubelet's configuration has it. */
  readonly topologyPolicy: string;
  /** Whether the memory manager gives memory of NUMA nodes (policy Static). */
  readonly givesMemory: boolean;
  readonly reserved: CpuSet;
  /** CPUs that some container owns. */
  readonly owned: CpuSet;
  /** CPUs that the virtual switch polls on. */
  readonly polled: CpuSet;
}

/**
 * The NUMA nodes that the devices of a preferred network name, so that the kubelet gives CPUs there. Empty: none, and the
 * kubelet decides as it would without the preference.
 *
 * No hint of the kubelet only prefers: one that cannot be met refuses the pod under `restricted` and `single-numa-node`,
 * and under `best-effort` splits it over NUMA nodes. So a NUMA node is named only where every pod that fits on one NUMA
 * node fits on this one, and where a pod that fits on none is split over the same two: on a host of two, under `best-effort`,
 * while this one has the most free CPUs, all of them whole cores that nothing polls on. Free memory of a NUMA node is
 * not known, so nothing is named where the kubelet gives memory as well.
 *
 * @param cells the NUMA nodes of the network
 */
export function hintCells(node: HintingNode, cells: CpuSet): CpuSet {
  const { host, topologyPolicy, givesMemory, reserved, owned, polled } = node;
  if (topologyPolicy !== 'best-effort' || givesMemory || host.cells.length !== 2) return CpuSet.EMPTY;
  const [near, ...alsoNear] = host.cells.filter(({ id }) => cells.has(id));
  if (near === undefined || alsoNear.length > 0) return CpuSet.EMPTY;
  const taken = reserved.union(owned);
  const free = near.cpus.minus(taken);
  const elsewhere = host.online.minus(near.cpus).minus(taken);
  const harmless = free.size >= elsewhere.size && isWholeCores(host, free) && !free.intersects(polled);
  return harmless && !free.isEmpty ? CpuSet.of([near.id]) : CpuSet.EMPTY;
}
