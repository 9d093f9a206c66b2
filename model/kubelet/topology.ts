import { CpuSet } from '../cpu-set.ts';
import type { Host, HostCpu } from '../host.ts';

/**
 * The counts that the kubelet stores in addition to the CPUs. They are independent values: its algorithms compare them
 * (sockets with NUMA nodes) and divide by them without looking at the CPUs.
 */
export type TopologyCounts = Readonly<Record<'cpus' | 'cores' | 'sockets' | 'cells' | 'uncores', number>>;

/**
 * One level of the hierarchy (cores, sockets, cells, uncore caches). Groups have consecutive numbers in ascending order
 * of their ids, so that comparing numbers compares ids.
 */
export interface Level {
  readonly ids: readonly number[];
  /** The group of each CPU, by the CPU's position. */
  readonly of: Int32Array;
  /** The positions of each group's CPUs, ascending. */
  readonly members: readonly Int32Array[];
  readonly sets: readonly CpuSet[];
  /** Number of CPUs of the smallest group. */
  readonly smallest: number;
}

/**
 * The CPU topology of the kubelet's CPU manager, indexed. The *position* of a CPU is its rank among the CPU ids.
 * Source: pkg/kubelet/cm/cpumanager/topology/topology.go.
 */
export interface CpuTopology {
  readonly counts: TopologyCounts;
  readonly cpus: CpuSet;
  readonly ids: Int32Array;
  /** Positions by CPU id; -1 if there is no such CPU. */
  readonly positions: Int32Array;
  readonly cores: Level;
  readonly sockets: Level;
  readonly cells: Level;
  readonly uncores: Level;
  /**
   * Every NUMA node that cAdvisor reports, including nodes without CPUs, ascending. Bit i of a NUMA mask is entry i.
   */
  readonly numaIds: readonly number[];
  /** The bit (index into `numaIds`) of each dense cell. */
  readonly bitOfCell: readonly number[];
  readonly cpusPerCore: number;
  readonly cpusPerSocket: number;
  readonly cpusPerUncore: number;
}

/**
 * Indexes CPUs and counts without checks, because fixtures of the kubelet contradict themselves on purpose.
 * @param extraCells NUMA nodes without CPUs
 */
export function createTopology(
  cpus: readonly HostCpu[],
  counts: TopologyCounts,
  extraCells: Iterable<number> = [],
): CpuTopology {
  const sorted = [...cpus].sort((a, b) => a.id - b.id);
  const ids = Int32Array.from(sorted, (cpu) => cpu.id);
  const positions = new Int32Array((ids.at(-1) ?? -1) + 1).fill(-1);
  ids.forEach((id, position) => {
    positions[id] = position;
  });
  const levelOf = (group: Exclude<keyof HostCpu, 'id'>) =>
    level(
      ids,
      sorted.map((cpu) => cpu[group]),
    );
  const cells = levelOf('cell');
  const numaIds = [...new Set([...cells.ids, ...extraCells])].sort((a, b) => a - b);
  return Object.freeze({
    counts,
    cpus: CpuSet.of(ids),
    ids,
    positions,
    cores: levelOf('core'),
    sockets: levelOf('socket'),
    cells,
    uncores: levelOf('uncore'),
    numaIds,
    bitOfCell: cells.ids.map((id) => numaIds.indexOf(id)),
    cpusPerCore: perGroup(counts.cpus, counts.cores),
    cpusPerSocket: perGroup(counts.cpus, counts.sockets),
    cpusPerUncore: perGroup(counts.cpus, counts.uncores),
  });
}

/**
 * The topology that the kubelet discovers on a host.
 * @param extraCells NUMA nodes without CPUs, which a Host does not contain but which the kubelet's topology and memory
 * managers count
 */
export function topologyOfHost(host: Host, extraCells: readonly number[] = []): CpuTopology {
  const counts = {
    ...host.counts,
    cores: host.cores.length,
    cells: host.cells.filter((cell) => !cell.cpus.isEmpty).length,
    uncores: new Set(host.cpus.map(({ uncore }) => uncore)).size,
  };
  return createTopology(host.cpus, counts, [...host.cells.map((cell) => cell.id), ...extraCells]);
}

/** The CPUs at the positions whose entry in `flags` is not 0. */
export function cpusAt(topology: CpuTopology, flags: Uint8Array): CpuSet {
  const words = new Uint32Array((topology.positions.length + 31) >>> 5);
  for (let position = 0; position < flags.length; position++) {
    if (flags[position] === 0) continue;
    const id = topology.ids[position]!;
    words[id >>> 5]! |= 1 << (id & 31);
  }
  return CpuSet.fromWords(words);
}

/** 1 at the position of every CPU of the set; CPUs that the topology lacks are ignored. */
export function flagsOf(topology: CpuTopology, cpus: CpuSet): Uint8Array {
  const words = cpus.toWords((topology.positions.length + 31) >>> 5);
  const flags = new Uint8Array(topology.ids.length);
  for (let position = 0; position < flags.length; position++) {
    const id = topology.ids[position]!;
    flags[position] = (words[id >>> 5]! >>> (id & 31)) & 1;
  }
  return flags;
}

/** The number of CPUs of the set in each cell, by dense cell number. */
export function countByCell(topology: CpuTopology, cpus: CpuSet): Int32Array {
  if (cpus.isEmpty) return new Int32Array(topology.cells.ids.length);
  const flags = flagsOf(topology, cpus);
  const counts = new Int32Array(topology.cells.ids.length);
  for (let position = 0; position < flags.length; position++) counts[topology.cells.of[position]!]! += flags[position]!;
  return counts;
}

/** The set with all threads of every core that has a CPU in it. */
export function withSiblings(topology: CpuTopology, cpus: CpuSet): CpuSet {
  const flags = flagsOf(topology, cpus);
  const touched = new Set<number>();
  flags.forEach((flag, position) => {
    if (flag !== 0) touched.add(topology.cores.of[position]!);
  });
  for (const core of touched) for (const position of topology.cores.members[core]!) flags[position] = 1;
  return cpusAt(topology, flags);
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

/** The node ids of a NUMA mask, ascending. */
export function numaNodes(topology: CpuTopology, mask: number): number[] {
  return topology.numaIds.filter((_, bit) => (mask & (1 << bit)) !== 0);
}

function perGroup(cpus: number, groups: number): number {
  return groups === 0 ? 0 : Math.floor(cpus / groups);
}

function level(cpuIds: Int32Array, groupOfPosition: readonly number[]): Level {
  const ids = [...new Set(groupOfPosition)].sort((a, b) => a - b);
  const rank = new Map(ids.map((id, index) => [id, index]));
  const of = Int32Array.from(groupOfPosition, (id) => rank.get(id) ?? 0);
  const members = ids.map((): number[] => []);
  of.forEach((group, position) => {
    members[group]!.push(position);
  });
  const smallest = members.reduce((least, list) => Math.min(least, list.length), Number.POSITIVE_INFINITY);
  const sets = members.map((list) => CpuSet.of(list.map((position) => cpuIds[position]!)));
  return { ids, of, members: members.map((list) => Int32Array.from(list)), sets, smallest };
}
