import { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { isWholeCores } from '../host-cores.ts';

/** Current state of the kubelet and its CPUs. */
export interface HintingNode {
  readonly host: Host;
  /** Policy of the topology manager, from the kubelet's configuration. */
  readonly topologyPolicy: string;
  /** Whether the memory manager assigns memory of NUMA nodes (policy Static). */
  readonly givesMemory: boolean;
  readonly reserved: CpuSet;
  /** CPUs that have an owner. */
  readonly owned: CpuSet;
  /** CPUs of the virtual switch's poll mode drivers. */
  readonly polled: CpuSet;
}

/**
 * The NUMA nodes that the devices of a preferred network report, so that the kubelet assigns CPUs there. Empty: the
 * kubelet decides as without the preference.
 *
 * The kubelet has no hints that are only preferred: if a hint cannot be met, the kubelet refuses the pod under
 * `restricted` and `single-numa-node`, and splits it over NUMA nodes under `best-effort`. The devices therefore report
 * a NUMA node only if every pod that fits on one NUMA node fits on this one, and if a pod that fits on none is split
 * over the same two: on a host with two NUMA nodes, under `best-effort`, while this one has the most free CPUs, all of
 * them whole cores without a poll mode driver. Free memory of a NUMA node is unknown, so the devices report none if the
 * kubelet assigns memory as well.
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
