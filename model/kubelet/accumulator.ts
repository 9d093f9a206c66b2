import type { CpuSet } from '../cpu-set.ts';
import { type CpuTopology, cpusAt, flagsOf, type Level } from './topology.ts';

/**
 * Whether single threads are taken core by core (`packed`), by ascending id within a socket (`spread`), or one of each
 * core of a socket in turn (`spread-by-core`).
 */
export type Sorting = 'packed' | 'spread' | 'spread-by-core';

/**
 * Groups and counts are below this value, so that `count * RANK + group` fits 31 bits and sorts by count, then by
 * group.
 */
const RANK = 32_768;

/**
 * Takes CPUs out of a free set, level by level, in the kubelet's order: at every level, groups with fewer free CPUs
 * come first, then lower ids.
 *
 * Two invariants copy the kubelet and look wrong: taking a group adds *all* its CPUs, free or not, and reduces the
 * number still needed by all of them, even if some were taken before. Neither shows on regular hosts. Both show on
 * hybrid processors and where a cache spans NUMA nodes, and a prediction must reproduce them.
 *
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, cpuAccumulator.
 */
export class Accumulator {
  needed: number;
  readonly #topology: CpuTopology;
  readonly #free: Uint8Array;
  readonly #taken: Uint8Array;
  readonly #sorting: Sorting;
  /** Free CPUs by group, for each level used so far. */
  readonly #levels: Level[] = [];
  readonly #counts: Int32Array[] = [];
  #available = 0;

  constructor(topology: CpuTopology, available: CpuSet, needed: number, sorting: Sorting) {
    this.needed = needed;
    this.#topology = topology;
    this.#sorting = sorting;
    this.#free = flagsOf(topology, available);
    this.#taken = new Uint8Array(this.#free.length);
    for (let position = 0; position < this.#free.length; position++) this.#available += this.#free[position]!;
  }

  get isSatisfied(): boolean {
    return this.needed < 1;
  }

  get isFailed(): boolean {
    return this.needed > this.#available;
  }

  get result(): CpuSet {
    return cpusAt(this.#topology, this.#taken);
  }

  /** The CPUs that are still free in a group. */
  freeIn(level: Level, group: number): CpuSet {
    const flags = new Uint8Array(this.#free.length);
    for (const position of level.members[group]!) flags[position] = this.#free[position]!;
    return cpusAt(this.#topology, flags);
  }

  freeCount(level: Level, group: number): number {
    return this.#countsOf(level)[group]!;
  }

  take(positions: ArrayLike<number>): void {
    for (let i = 0; i < positions.length; i++) {
      const position = positions[i]!;
      this.needed--;
      this.#taken[position] = 1;
      if (this.#free[position] === 0) continue;
      this.#free[position] = 0;
      this.#available--;
      for (let level = 0; level < this.#levels.length; level++) {
        this.#counts[level]![this.#levels[level]!.of[position]!]!--;
      }
    }
  }

  sortedCells(): number[] {
    const { cells, sockets } = this.#topology;
    return this.#cellsFirst ? this.#sortedGroups(cells) : this.#within(this.sortedSockets(), sockets, cells);
  }

  /** Sockets with a free CPU. A socket that spans NUMA nodes appears once for each of them. */
  sortedSockets(): number[] {
    const { cells, sockets } = this.#topology;
    return this.#cellsFirst ? this.#within(this.sortedCells(), cells, sockets) : this.#sortedGroups(sockets);
  }

  sortedUncores(): number[] {
    return this.#within(this.sortedCells(), this.#topology.cells, this.#topology.uncores);
  }

  sortedCores(): number[] {
    const { cells, sockets, cores } = this.#topology;
    return this.#cellsFirst
      ? this.#within(this.sortedSockets(), sockets, cores)
      : this.#within(this.sortedCells(), cells, cores);
  }

  /** Positions of the free CPUs, in the order in which single threads are taken. */
  sortedCpus(): number[] {
    if (this.#sorting === 'spread-by-core') return this.sortedSockets().flatMap((socket) => this.#cpusInTurn(socket));
    const packed = this.#sorting === 'packed';
    const level = packed ? this.#topology.cores : this.#topology.sockets;
    const groups = packed ? this.sortedCores() : this.sortedSockets();
    return groups.flatMap((group) => this.#freePositions(level, group));
  }

  /** The free CPUs of a socket: the first of each core, then the second of each. */
  #cpusInTurn(socket: number): number[] {
    const { sockets, cores } = this.#topology;
    const inSocket = new Set(this.#freePositions(sockets, socket));
    const sorted = this.#within([socket], sockets, cores);
    const ofCores = sorted.map((core) => this.#freePositions(cores, core).filter((position) => inSocket.has(position)));
    const turns = Math.max(0, ...ofCores.map(({ length }) => length));
    return Array.from({ length: turns }, (_, turn) => ofCores.flatMap((cpus) => cpus[turn] ?? [])).flat();
  }

  freeCells(): number[] {
    const { cells } = this.#topology;
    return this.sortedCells().filter((cell) => this.freeCount(cells, cell) === cells.members[cell]!.length);
  }

  freeSockets(): number[] {
    const { sockets, cpusPerSocket } = this.#topology;
    return this.sortedSockets().filter((socket) => this.freeCount(sockets, socket) === cpusPerSocket);
  }

  freeUncores(): number[] {
    const { uncores } = this.#topology;
    return this.sortedUncores().filter((uncore) => this.freeCount(uncores, uncore) === uncores.members[uncore]!.length);
  }

  freeCores(): number[] {
    const { cores, cpusPerCore } = this.#topology;
    return this.sortedCores().filter((core) => this.freeCount(cores, core) === cpusPerCore);
  }

  /** Takes whole groups of the higher level, which is NUMA nodes or sockets. */
  takeFirstLevel(): void {
    if (this.#cellsFirst) this.#takeFullCells();
    else this.#takeFullSockets();
  }

  takeSecondLevel(): void {
    if (this.#cellsFirst) this.#takeFullSockets();
    else this.#takeFullCells();
  }

  takeFullCores(): void {
    this.#takeFull(this.#topology.cores, () => this.freeCores());
  }

  /** Takes whole uncore caches while enough CPUs are needed, then the rest from a single cache. */
  takeUncores(): void {
    for (const uncore of this.sortedUncores()) {
      if (this.needed >= this.#topology.cpusPerUncore) {
        this.#takeFull(this.#topology.uncores, () => this.freeUncores());
      }
      if (this.isSatisfied) return;
      this.#takePartialUncore(uncore);
      if (this.isSatisfied) return;
    }
  }

  takeRemaining(): void {
    for (const position of this.sortedCpus()) {
      this.take([position]);
      if (this.isSatisfied) return;
    }
  }

  /**
   * Whether NUMA nodes are the higher level. As the kubelet does, it checks for at least as many sockets as NUMA nodes;
   * a NUMA node then contains one or more sockets.
   */
  get #cellsFirst(): boolean {
    return this.#topology.counts.sockets >= this.#topology.counts.cells;
  }

  #takeFullCells(): void {
    this.#takeFull(this.#topology.cells, () => this.freeCells());
  }

  #takeFullSockets(): void {
    this.#takeFull(this.#topology.sockets, () => this.freeSockets());
  }

  /** Takes whole groups. Most requests are smaller than any socket or NUMA node, and then nothing is sorted. */
  #takeFull(level: Level, freeGroups: () => readonly number[]): void {
    if (this.needed < level.smallest) return;
    for (const group of freeGroups()) {
      const members = level.members[group]!;
      if (this.needed >= members.length) this.take(members);
    }
  }

  #takePartialUncore(uncore: number): void {
    const { uncores, cores, cpusPerCore } = this.#topology;
    const coresNeeded = Math.floor((this.needed + cpusPerCore - 1) / cpusPerCore);
    const inCache = new Set(this.#freePositions(uncores, uncore).map((position) => cores.of[position]!));
    const chosen = [...inCache].sort((a, b) => a - b).slice(0, coresNeeded);
    let positions = chosen.flatMap((core) => this.#freePositions(cores, core)).sort((a, b) => a - b);
    // An odd request leaves one thread of its last core free.
    if (this.needed % 2 !== 0 && cpusPerCore > 1 && positions.length > this.needed) positions = positions.slice(0, -1);
    if (positions.length === this.needed) this.take(positions);
  }

  #freePositions(level: Level, group: number): number[] {
    const positions: number[] = [];
    for (const position of level.members[group]!) if (this.#free[position] !== 0) positions.push(position);
    return positions;
  }

  #countsOf(level: Level): Int32Array {
    const indexOfLevel = this.#levels.indexOf(level);
    if (indexOfLevel >= 0) return this.#counts[indexOfLevel]!;
    const counts = new Int32Array(level.ids.length);
    for (let position = 0; position < this.#free.length; position++) {
      counts[level.of[position]!]! += this.#free[position]!;
    }
    this.#levels.push(level);
    this.#counts.push(counts);
    return counts;
  }

  #sortedGroups(level: Level): number[] {
    const counts = this.#countsOf(level);
    const groups: number[] = [];
    for (let group = 0; group < counts.length; group++) if (counts[group]! > 0) groups.push(group);
    return ranked(groups, counts);
  }

  /** For each outer group in turn, the sorted inner groups that have a free CPU in it. */
  #within(outer: readonly number[], outerLevel: Level, inner: Level): number[] {
    const counts = this.#countsOf(inner);
    const seen = new Int32Array(inner.ids.length).fill(-1);
    const result: number[] = [];
    for (let turn = 0; turn < outer.length; turn++) {
      const members = outerLevel.members[outer[turn]!]!;
      const freeInOrder: number[] = [];
      for (let i = 0; i < members.length; i++) {
        const position = members[i]!;
        const candidate = inner.of[position]!;
        if (this.#free[position] === 0 || seen[candidate] === turn) continue;
        seen[candidate] = turn;
        freeInOrder.push(candidate);
      }
      for (const group of ranked(freeInOrder, counts)) result.push(group);
    }
    return result;
  }
}

function ranked(groups: number[], counts: Int32Array): number[] {
  if (groups.length < 2) return groups;
  const keys = new Int32Array(groups.length);
  for (let i = 0; i < keys.length; i++) keys[i] = counts[groups[i]!]! * RANK + groups[i]!;
  keys.sort();
  for (let i = 0; i < keys.length; i++) groups[i] = keys[i]! % RANK;
  return groups;
}
