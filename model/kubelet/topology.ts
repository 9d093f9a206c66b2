import { CpuSet, unionOf } from '../cpu-set.ts';
import type { Host, HostCpu } from '../host.ts';
import { groupBy } from '../lists.ts';

/** Independent of the CPUs: the kubelet's algorithms compare them and divide by them without looking at the CPUs. */
type TopologyCounts = Readonly<Record<'cpus' | 'cores' | 'sockets' | 'cells' | 'uncores', number>>;

/** One level of the hierarchy: cores, sockets, cells, uncore caches. */
export interface Level {
  /** The CPUs of each group, by its id, ascending. */
  readonly groups: ReadonlyMap<number, CpuSet>;
  /** The group of each CPU. */
  readonly of: ReadonlyMap<number, number>;
  /** Number of free CPUs of a whole group; undefined: all of its CPUs. The kubelet divides its counts for some levels. */
  readonly whole?: number;
}

/** Source: pkg/kubelet/cm/cpumanager/topology/topology.go. */
export interface CpuTopology {
  readonly counts: TopologyCounts;
  readonly cpus: CpuSet;
  readonly cores: Level;
  readonly sockets: Level;
  readonly cells: Level;
  readonly uncores: Level;
  /** All that cAdvisor reports, also without CPUs, ascending. Bit i of a NUMA mask is entry i. */
  readonly numaIds: readonly number[];
  readonly cpusPerCore: number;
  readonly cpusPerUncore: number;
}

/** Without checks: fixtures of the kubelet contradict themselves on purpose. @param extraCells without CPUs */
export function createTopology(
  cpus: readonly HostCpu[],
  counts: TopologyCounts,
  extraCells: Iterable<number> = [],
): CpuTopology {
  const cpusPerCore = perGroup(counts.cpus, counts.cores);
  const cells = levelOf(cpus, 'cell');
  return Object.freeze({
    counts,
    cpus: CpuSet.of(cpus.map(({ id }) => id)),
    cores: { ...levelOf(cpus, 'core'), whole: cpusPerCore },
    sockets: { ...levelOf(cpus, 'socket'), whole: perGroup(counts.cpus, counts.sockets) },
    cells,
    uncores: levelOf(cpus, 'uncore'),
    numaIds: [...new Set([...cells.groups.keys(), ...extraCells])].sort((a, b) => a - b),
    cpusPerCore,
    cpusPerUncore: perGroup(counts.cpus, counts.uncores),
  });
}

/** @param extraCells NUMA nodes without CPUs, which the kubelet's topology and memory managers count */
export function topologyOfHost(host: Host, extraCells: readonly number[] = []): CpuTopology {
  const counts = {
    ...host.counts,
    cores: host.cores.length,
    cells: host.cells.filter((cell) => !cell.cpus.isEmpty).length,
    uncores: new Set(host.cpus.map(({ uncore }) => uncore)).size,
  };
  return createTopology(host.cpus, counts, [...host.cells.map((cell) => cell.id), ...extraCells]);
}

/** The set with all threads of every core that has a CPU in it. */
export function withSiblings({ cores }: CpuTopology, cpus: CpuSet): CpuSet {
  return unionOf([...cores.groups.values()].filter((core) => core.intersects(cpus)));
}

/** The NUMA mask of the given node ids; ids that the host lacks are ignored. */
export function numaMask(topology: CpuTopology, nodes: Iterable<number>): number {
  let mask = 0;
  for (const node of nodes) {
    const bit = topology.numaIds.indexOf(node);
    if (bit >= 0) mask |= 1 << bit;
  }
  return mask;
}

export function numaNodes(topology: CpuTopology, mask: number): number[] {
  return topology.numaIds.filter((_, bit) => (mask & (1 << bit)) !== 0);
}

export function cpusOfNodes(topology: CpuTopology, mask: number): CpuSet {
  return unionOf(numaNodes(topology, mask).map((id) => topology.cells.groups.get(id) ?? CpuSet.EMPTY));
}

function perGroup(cpus: number, groups: number): number {
  return groups === 0 ? 0 : Math.floor(cpus / groups);
}

function levelOf(cpus: readonly HostCpu[], group: Exclude<keyof HostCpu, 'id'>): Level {
  const groups = [...groupBy(cpus, (cpu) => cpu[group])].sort(([a], [b]) => a - b);
  return {
    groups: new Map(groups.map(([id, members]) => [id, CpuSet.of(members.map((cpu) => cpu.id))])),
    of: new Map(cpus.map((cpu) => [cpu.id, cpu[group]])),
  };
}
