import { cpuListText } from './amounts.ts';
import { CpuSet, unionOf } from './cpu-set.ts';
import { PlumblineError } from './errors.ts';

/** One online logical CPU, with the kubelet's ids of its core, socket, NUMA node and cache. */
export interface HostCpu {
  readonly id: number;
  /** The physical core. Its id is the lowest id of its online siblings, as in cAdvisor and therefore in the kubelet. */
  readonly core: number;
  readonly socket: number;
  readonly cell: number;
  /** The last-level cache. */
  readonly uncore: number;
}

/** The kubelet's numbers of CPUs and sockets. Without NUMA directories the number of CPUs includes those offline. */
export interface HostCounts {
  readonly cpus: number;
  readonly sockets: number;
}

export interface Cell {
  readonly id: number;
  readonly cpus: CpuSet;
}

/** The CPU topology of a host. Frozen; every list is in ascending order. */
export interface Host {
  readonly cpus: readonly HostCpu[];
  readonly online: CpuSet;
  readonly cells: readonly Cell[];
  /** The online threads of each physical core, ordered by their lowest id. */
  readonly cores: readonly CpuSet[];
  /** CPUs per core as in the kubelet: CPUs / cores by integer division, so 1 on a hybrid processor and never 0. */
  readonly threadsPerCore: number;
  readonly counts: HostCounts;
}

interface CpuList {
  readonly id: number;
  readonly cpus: string;
}

/** A host on the wire and in fixtures: CPU lists, which stay short at 1,024 CPUs. */
export interface HostDescription {
  readonly cells: readonly CpuList[];
  /** CPU lists of SMT siblings, one for each core: `0,8`. */
  readonly cores: readonly string[];
  /** Sockets and their CPU lists. Absent: each cell is a separate socket. */
  readonly sockets?: readonly CpuList[] | undefined;
  /** Uncore caches and their CPU lists. Absent: one for each socket. */
  readonly uncores?: readonly CpuList[] | undefined;
  /** Absent: as many as the description has. */
  readonly counts?: HostCounts | undefined;
}

/** A description that contradicts itself; the message names the CPU. */
export class HostError extends PlumblineError {
  constructor(message: string) {
    super('host-topology', message);
  }
}

/** One more than the highest CPU id of a host: the kernel's CONFIG_NR_CPUS on the largest builds. */
export const MAX_CPU_ID = 8192;
/** Largest number of online CPUs of a host: the largest Linux servers have 1,920. */
export const MAX_HOST_CPUS = 2048;
/** One more than the highest NUMA node id: the kernel's MAX_NUMNODES with CONFIG_NODES_SHIFT=10. */
export const MAX_CELL_ID = 1024;
/** Largest number of CPUs that the kubelet takes for one core, where core ids repeat in each cluster of a processor. */
export const MAX_THREADS = 64;
/** Largest number of NUMA nodes of a host. */
export const MAX_CELLS = 64;

/**
 * The cost is linear in text and CPUs: groups with more CPUs than a host can have are refused before that.
 * @throws HostError if a CPU is in two cells, in two cores, or in a core and no cell, or a core in two cells;
 * ParseError
 */
export function createHost(description: HostDescription): Host {
  if (description.cells.length > MAX_CELLS) {
    throw new HostError(`${description.cells.length} NUMA nodes: at most ${MAX_CELLS} are supported`);
  }
  if (description.cores.length > MAX_HOST_CPUS) {
    throw new HostError(`${description.cores.length} cores: a host has at most ${MAX_HOST_CPUS}`);
  }
  const cells = parseGroups('NUMA nodes', description.cells).sort((a, b) => a.id - b.id);
  const wide = cells.find(({ id }) => id >= MAX_CELL_ID);
  if (wide !== undefined) throw new HostError(`NUMA node ${wide.id}: ids end at ${MAX_CELL_ID - 1}`);
  const byFirst = parseLists('cores', description.cores, MAX_THREADS).map((cpus) => ({ id: cpus.first ?? 0, cpus }));
  const cores = byFirst.sort((a, b) => a.id - b.id).map(({ cpus }) => cpus);
  const { sockets, uncores } = description;
  const cellOf = ownerIndex('cell', cells);
  const coreOf = ownerIndex('core', byFirst);
  const socketOf = sockets ? ownerIndex('socket', parseGroups('sockets', sockets)) : cellOf;
  const uncoreOf = uncores ? ownerIndex('uncore cache', parseGroups('uncore caches', uncores)) : socketOf;
  const online = unionOf(cells.map(({ cpus }) => cpus));
  const homeless = unionOf(cores).minus(online).first;
  if (homeless !== undefined) throw new HostError(`CPU ${homeless} belongs to a core but to no NUMA node`);
  const cpus = [...online].map((id) => {
    const core = coreOf(id);
    if (core === undefined) throw new HostError(`CPU ${id} belongs to NUMA node ${cellOf(id)} but to no core`);
    const socket = socketOf(id);
    if (socket === undefined) throw new HostError(`CPU ${id} belongs to no socket`);
    const cell = cellOf(id) ?? 0;
    if (cellOf(core) !== cell) {
      const cells = `NUMA node ${cellOf(core)} and CPU ${id} to NUMA node ${cell}`;
      throw new HostError(`CPU ${id} shares a core with CPU ${core}, but CPU ${core} belongs to ${cells}`);
    }
    return Object.freeze({ id, core, socket, cell, uncore: uncoreOf(id) ?? socket });
  });
  const counts = description.counts ?? { cpus: cpus.length, sockets: new Set(cpus.map(({ socket }) => socket)).size };
  const threadsPerCore = Math.max(1, Math.floor(counts.cpus / Math.max(1, cores.length)));
  if (threadsPerCore > MAX_THREADS) {
    throw new HostError(
      `the kubelet counts ${counts.cpus} CPUs and ${cores.length} cores: a core has at most ${MAX_THREADS}`,
    );
  }
  return Object.freeze({ cpus, online, cells, cores, threadsPerCore, counts });
}

/** All threads of the cores that have every thread in `cpus`. */
export function wholeCoresWithin(host: Host, cpus: CpuSet): CpuSet {
  return unionOf(host.cores.filter((core) => core.isSubsetOf(cpus)));
}

function parseGroups(what: string, groups: HostDescription['cells']): Cell[] {
  const sets = parseLists(
    what,
    groups.map(({ cpus }) => cpus),
  );
  return groups.map(({ id }, i) => ({ id, cpus: sets[i]! }));
}

/** If together they have more CPUs than a host can have, some CPU is in two of them. @param most CPUs of a core */
function parseLists(what: string, texts: readonly string[], most = MAX_CPU_ID): CpuSet[] {
  let named = 0;
  return texts.map((text) => {
    const cpus = CpuSet.parse(text, MAX_CPU_ID);
    if (cpus.size > most) {
      throw new HostError(`core ${cpus.brief} has ${cpus.size} CPUs: a core has at most ${most}`);
    }
    named += cpus.size;
    if (named <= MAX_HOST_CPUS) return cpus;
    throw new HostError(
      `${what} name more than ${MAX_HOST_CPUS} CPUs: the host is too large, or a CPU is listed twice`,
    );
  });
}

/** @throws HostError if a CPU is in two groups */
function ownerIndex(what: string, groups: readonly Cell[]): (cpu: number) => number | undefined {
  const owners = new Map<number, number>();
  for (const { id, cpus } of groups) {
    for (const cpu of cpus) {
      const other = owners.get(cpu) ?? id;
      if (other !== id) throw new HostError(`CPU ${cpu} is in ${what} ${other} and in ${what} ${id}`);
      owners.set(cpu, id);
    }
  }
  return (cpu) => owners.get(cpu);
}

/** As on hybrid processors, and on hosts with single threads offline. Undefined if all are equal. */
export function unevenCore(host: Host): CpuSet | undefined {
  const threads = host.cores[0]?.size;
  return host.cores.find((core) => core.size !== threads);
}

/** Whether the CPUs are whole cores: none of their cores has another online thread. */
export function isWholeCores(host: Host, cpus: CpuSet): boolean {
  return unionOf(host.cores.filter((core) => core.intersects(cpus))).equals(cpus);
}

/** @param what the name of the CPUs, for the message @throws HostError naming the lowest missing CPU */
export function assertOnline(host: Host, cpus: CpuSet, what: string): void {
  const missing = cpus.minus(host.online).first;
  if (missing === undefined) return;
  throw new HostError(
    `${what} ${cpus.brief} name CPU ${missing}, which is not online; the host has ${cpuListText(host.online.brief)}`,
  );
}

/** If all other cores have their threads at equal distances. Empty on a hybrid processor. */
export function missingThreads({ cores, online }: Host): CpuSet {
  const most = Math.max(...cores.map(({ size }) => size));
  const distances = cores.filter(({ size }) => size === most).map((core) => [...core].map((id) => id - core.first!));
  const [pattern = []] = distances;
  if (distances.some((other) => other.join() !== pattern.join())) return CpuSet.EMPTY;
  const missing = cores
    .filter(({ size }) => size < most)
    .map((core) => {
      // The lowest place where the threads that are left fit the pattern; its other threads must not exist elsewhere.
      const starts = pattern
        .map((distance) => core.first! - distance)
        .filter((start) => start >= 0)
        .reverse();
      const whole = starts.map((start) => CpuSet.of(pattern.map((distance) => start + distance)));
      return whole.find((cpus) => core.isSubsetOf(cpus) && !cpus.minus(core).intersects(online))?.minus(core);
    });
  return missing.includes(undefined) ? CpuSet.EMPTY : unionOf(missing.filter((cpus) => cpus !== undefined));
}

/** The cores of which the CPUs include some threads, but not all. */
export function splitCores(host: Host, cpus: CpuSet): CpuSet[] {
  return host.cores.filter((core) => core.intersects(cpus) && !core.isSubsetOf(cpus));
}

export const splitCore = (host: Host, cpus: CpuSet): CpuSet | undefined => splitCores(host, cpus).at(0);
