import { CpuSet, unionOf } from '../cpu-set.ts';
import type { CpuTopology, Level } from './topology.ts';

/** `packed`: core by core; `spread`: by id within a socket; `spread-by-core`: one of each core of a socket in turn. */
export type Sorting = 'packed' | 'spread' | 'spread-by-core';

/**
 * Takes CPUs out of a free set, level by level, in the kubelet's order: groups with fewer free CPUs first, then lower
 * ids. Two invariants copy the kubelet and look wrong: taking a group adds *all* its CPUs, free or not, and reduces the
 * number still needed by all of them. Both show on hybrid processors and where a cache spans NUMA nodes.
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, cpuAccumulator.
 */
export class Accumulator {
  needed: number;
  readonly #topology: CpuTopology;
  readonly #sorting: Sorting;
  #free: CpuSet;
  result = CpuSet.EMPTY;

  constructor(topology: CpuTopology, available: CpuSet, needed: number, sorting: Sorting) {
    this.needed = needed;
    this.#topology = topology;
    this.#sorting = sorting;
    this.#free = available.intersect(topology.cpus);
  }

  get isSatisfied(): boolean {
    return this.needed < 1;
  }

  get isFailed(): boolean {
    return this.needed > this.#free.size;
  }

  freeIn({ groups }: Level, group: number): CpuSet {
    return this.#free.intersect(groups.get(group)!);
  }

  take(cpus: CpuSet): void {
    this.needed -= cpus.size;
    this.result = this.result.union(cpus);
    this.#free = this.#free.minus(cpus);
  }

  /** The higher level first. The kubelet checks for at least as many sockets as NUMA nodes. */
  get levels(): readonly [Level, Level] {
    const { cells, sockets, counts } = this.#topology;
    return counts.sockets >= counts.cells ? [cells, sockets] : [sockets, cells];
  }

  /** Within each group of the level above in turn: a socket with several NUMA nodes appears once for each of them. */
  sorted(level: Level): number[] {
    const [highest, second] = this.levels;
    if (level === highest) return this.#within(this.#topology.cpus, level);
    let above = highest;
    if (level === this.#topology.cores) above = second;
    if (level === this.#topology.uncores) above = this.#topology.cells;
    return this.sorted(above).flatMap((group) => this.#within(above.groups.get(group)!, level));
  }

  wholeGroups(level: Level): number[] {
    const { groups, whole } = level;
    return this.sorted(level).filter((group) => this.freeIn(level, group).size === (whole ?? groups.get(group)!.size));
  }

  /** The free CPUs, in the order in which single threads are taken. */
  sortedCpus(): number[] {
    const { cores, sockets } = this.#topology;
    if (this.#sorting === 'spread-by-core') return this.sorted(sockets).flatMap((socket) => this.#cpusInTurn(socket));
    const level = this.#sorting === 'packed' ? cores : sockets;
    return this.sorted(level).flatMap((group) => [...this.freeIn(level, group)]);
  }

  /** The free CPUs of a socket: the first of each core, then the second of each. */
  #cpusInTurn(socket: number): number[] {
    const { sockets, cores } = this.#topology;
    const inSocket = sockets.groups.get(socket)!;
    const sorted = this.#within(inSocket, cores);
    const ofCores = sorted.map((core) => [...this.freeIn(cores, core).intersect(inSocket)]);
    const turns = Math.max(0, ...ofCores.map(({ length }) => length));
    return Array.from({ length: turns }, (_, turn) => ofCores.flatMap((cpus) => cpus[turn] ?? [])).flat();
  }

  takeWhole(level: Level): void {
    for (const group of this.wholeGroups(level)) {
      const members = level.groups.get(group)!;
      if (this.needed >= members.size) this.take(members);
    }
  }

  /** Takes whole uncore caches while enough CPUs are needed, then the rest from a single cache. */
  takeUncores(): void {
    const { uncores, cpusPerUncore } = this.#topology;
    for (const uncore of this.sorted(uncores)) {
      if (this.needed >= cpusPerUncore) this.takeWhole(uncores);
      if (this.isSatisfied) return;
      this.#takePartialUncore(uncore);
      if (this.isSatisfied) return;
    }
  }

  takeRemaining(): void {
    this.take(CpuSet.of(this.sortedCpus().slice(0, this.needed)));
  }

  #takePartialUncore(uncore: number): void {
    const { uncores, cores, cpusPerCore } = this.#topology;
    const coresNeeded = Math.floor((this.needed + cpusPerCore - 1) / cpusPerCore);
    const inCache = new Set([...this.freeIn(uncores, uncore)].map((cpu) => cores.of.get(cpu)!));
    const chosen = [...inCache].sort((a, b) => a - b).slice(0, coresNeeded);
    let cpus = unionOf(chosen.map((core) => this.freeIn(cores, core)));
    // An odd request leaves one thread of its last core free.
    if (this.needed % 2 !== 0 && cpusPerCore > 1 && cpus.size > this.needed) cpus = CpuSet.of([...cpus].slice(0, -1));
    if (cpus.size === this.needed) this.take(cpus);
  }

  #within(part: CpuSet, level: Level): number[] {
    const groups = [...new Set([...this.#free.intersect(part)].map((cpu) => level.of.get(cpu)!))];
    const counts = new Map(groups.map((group) => [group, this.freeIn(level, group).size]));
    return groups.sort((a, b) => counts.get(a)! - counts.get(b)! || a - b);
  }
}
