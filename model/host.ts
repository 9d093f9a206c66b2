import { CpuSet, unionOf } from './cpu-set.ts';
import { PlumblineError } from './errors.ts';

/** One online logical CPU, with the names the kubelet gives to what it is part of. */
export interface HostCpu {
  readonly id: number;
  /** The physical core, named by its lowest online sibling's CPU id (as cAdvisor and so the kubelet name it). */
  readonly core: number;
  readonly socket: number;
  /** The NUMA node. */
  readonly cell: number;
  /** The uncore (last-level) cache. */
  readonly uncore: number;
}

/** A NUMA node and its online CPUs. */
export interface Cell {
  readonly id: number;
  readonly cpus: CpuSet;
}

/** What a host is made of. Frozen; every list ascends. */
export interface Host {
  readonly cpus: readonly HostCpu[];
  readonly online: CpuSet;
  readonly cells: readonly Cell[];
  /** Each physical core's online threads, ordered by the lowest of them. */
  readonly cores: readonly CpuSet[];
  /** The kubelet's CPUs per core: CPUs / cores by integer division, so 1 on a hybrid part and never 0. */
  readonly threadsPerCore: number;
}

/** How a host is described on the wire and in fixtures: CPU list strings, so that it stays short at 1,024 CPUs. */
export interface HostDescription {
  readonly cells: readonly { readonly id: number; readonly cpus: string }[];
  /** Sibling lists, one for each core: `0,8`. */
  readonly cores: readonly string[];
  /** Sockets by CPU list; absent: each cell is a socket of its own. */
  readonly sockets?: readonly { readonly id: number; readonly cpus: string }[];
  /** Uncore caches by CPU list; absent: one for each socket. */
  readonly uncores?: readonly { readonly id: number; readonly cpus: string }[];
}

/** A description that contradicts itself; the message names the CPU. */
export class HostError extends PlumblineError {
  constructor(message: string) {
    super('host-topology', message);
  }
}

/**
 * Builds a host from its description.
 * @throws HostError if a CPU is in two cells, two cores, or in a core but in no cell, or if a core is in two cells
 * @throws ParseError if a list is no CPU list
 */
export function createHost(description: HostDescription): Host {
  const cells = description.cells.map(({ id, cpus }) => ({ id, cpus: CpuSet.parse(cpus) })).sort((a, b) => a.id - b.id);
  const cores = description.cores.map((text) => CpuSet.parse(text)).sort((a, b) => (a.first ?? 0) - (b.first ?? 0));
  const cellOf = ownerIndex('cell', cells);
  const coreOf = ownerIndex(
    'core',
    cores.map((cpus) => ({ id: cpus.first ?? 0, cpus })),
  );
  const socketOf = description.sockets ? ownerIndex('socket', parsed(description.sockets)) : cellOf;
  const uncoreOf = description.uncores ? ownerIndex('uncore cache', parsed(description.uncores)) : socketOf;
  const online = unionOf(cells.map(({ cpus }) => cpus));
  for (const cpu of unionOf(cores)) {
    if (!online.has(cpu)) throw new HostError(`CPU ${cpu} belongs to a core but to no NUMA node`);
  }
  const cpus = [...online].map((id) => {
    const core = coreOf.get(id);
    if (core === undefined) throw new HostError(`CPU ${id} belongs to NUMA node ${cellOf.get(id)} but to no core`);
    const socket = socketOf.get(id);
    if (socket === undefined) throw new HostError(`CPU ${id} belongs to no socket`);
    const cell = cellOf.get(id) ?? 0;
    if (cellOf.get(core) !== cell) {
      const cells = `NUMA node ${cellOf.get(core)} and CPU ${id} to NUMA node ${cell}`;
      throw new HostError(`CPU ${id} shares a core with CPU ${core}, but CPU ${core} belongs to ${cells}`);
    }
    return Object.freeze({ id, core, socket, cell, uncore: uncoreOf.get(id) ?? socket });
  });
  const threadsPerCore = Math.max(1, Math.floor(cpus.length / Math.max(1, cores.length)));
  return Object.freeze({ cpus, online, cells, cores, threadsPerCore });
}

/** The description that `createHost` reads back to the same host. */
export function describeHost(host: Host): HostDescription {
  const group = (key: 'socket' | 'uncore') => {
    const ids = [...new Set(host.cpus.map((cpu) => cpu[key]))].sort((a, b) => a - b);
    return ids.map((id) => ({
      id,
      cpus: CpuSet.of(host.cpus.filter((cpu) => cpu[key] === id).map((cpu) => cpu.id)).toString(),
    }));
  };
  return {
    cells: host.cells.map(({ id, cpus }) => ({ id, cpus: cpus.toString() })),
    cores: host.cores.map((core) => core.toString()),
    sockets: group('socket'),
    uncores: group('uncore'),
  };
}

/** The threads of every core of which at least one thread is in `cpus`. */
export function wholeCoresTouching(host: Host, cpus: CpuSet): CpuSet {
  return unionOf(host.cores.filter((core) => core.intersects(cpus)));
}

/** The threads of every core all of whose threads are in `cpus`. */
export function wholeCoresWithin(host: Host, cpus: CpuSet): CpuSet {
  return unionOf(host.cores.filter((core) => core.isSubsetOf(cpus)));
}

function parsed(groups: readonly { readonly id: number; readonly cpus: string }[]) {
  return groups.map(({ id, cpus }) => ({ id, cpus: CpuSet.parse(cpus) }));
}

function ownerIndex(what: string, groups: readonly { readonly id: number; readonly cpus: CpuSet }[]) {
  const owners = new Map<number, number>();
  for (const { id, cpus } of groups) {
    for (const cpu of cpus) {
      const other = owners.get(cpu);
      if (other !== undefined && other !== id)
        throw new HostError(`CPU ${cpu} is in ${what} ${other} and in ${what} ${id}`);
      owners.set(cpu, id);
    }
  }
  return owners;
}
