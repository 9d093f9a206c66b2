import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { lastingCpus, podCpus } from '../kubelet/pod-request.ts';
import type { NetworkNeed, PlacementHost, PlacementNeeds } from './needs.ts';

/** What a pod needs at the least, in the terms of a coarse fit. */
export interface CoarseNeed {
  /** Exclusive CPUs. */
  readonly cpus: number;
  /** They have to be whole cores. */
  readonly wholeCores: boolean;
  /** Required networks by the key they were set under. All the CPUs have to be near each of them. */
  readonly networks: readonly string[];
}

/**
 * The least that a pod needs wherever it is placed. A guest that spans NUMA nodes has to touch its networks only, so
 * these say nothing of where its CPUs are; and init containers may run anywhere and on broken cores.
 */
export function coarseNeedOf({
  request,
  networks,
  wholeCores = false,
  spansCells = false,
}: PlacementNeeds): CoarseNeed {
  const required = spansCells ? [] : networks.filter(({ affinity }) => affinity === 'required');
  const cpus = wholeCores || required.length > 0 ? lastingCpus(request) : podCpus(request);
  return { cpus, wholeCores, networks: required.map(networkKey) };
}

/** Does not fit. */
export const NO_FIT = -1;

const MAX_CELLS = 32;
/** All cells, where nothing narrows them. */
const EVERYWHERE = 0xffffffff;

/**
 * Free CPUs of many hosts in one typed array, to tell in microseconds which hosts are worth an exact prediction.
 *
 * A host's words are ordered by cell, then by thread of the core: bit c of the word of thread t is thread t of the c-th
 * core, and each cell starts on a word of its own. So the whole free cores of a cell are the AND of its threads' words,
 * and all that a fit does is AND, count and compare.
 *
 * A coarse fit is necessary, never sufficient: a host that it rules out would be refused by the exact prediction too.
 */
export class CoarseFit {
  #words = new Uint32Array(0);
  /** By host: where its words begin, its cells, its threads per core, words of one thread of one cell. */
  readonly #start: number[] = [];
  readonly #cells: number[] = [];
  readonly #threads: number[] = [];
  readonly #span: number[] = [];
  /** Bit position of each CPU by host, -1 for a CPU on a core with fewer threads than others. */
  readonly #bits: (Int32Array | undefined)[] = [];
  /** Cells of a network by host. Undefined or 0: nothing is known there, so it constrains nothing. */
  readonly #networks = new Map<string, number[]>();
  #used = 0;

  get size(): number {
    return this.#start.length;
  }

  /** The words, for whoever measures. */
  get words(): Uint32Array {
    return this.#words.subarray(0, this.#used);
  }

  /**
   * Adds a host and returns its index.
   * @throws RangeError if it has more than 32 NUMA nodes
   */
  add(host: Host, free: CpuSet): number {
    if (host.cells.length > MAX_CELLS) throw new RangeError(`${host.cells.length} NUMA nodes: at most ${MAX_CELLS}`);
    const index = this.size;
    const threads = Math.max(1, ...host.cores.map((core) => core.size));
    const coresOfCell = host.cells.map((cell) => host.cores.filter((core) => cell.cpus.intersects(core)));
    const span = Math.max(1, ...coresOfCell.map((cores) => Math.ceil(cores.length / 32)));
    const bits = new Int32Array((host.cpus.at(-1)?.id ?? -1) + 1).fill(-1);
    coresOfCell.forEach((cores, cell) => {
      cores.forEach((core, position) => {
        [...core].forEach((cpu, thread) => {
          bits[cpu] = ((cell * threads + thread) * span + (position >>> 5)) * 32 + (position & 31);
        });
      });
    });
    this.#start.push(this.#used);
    this.#cells.push(host.cells.length);
    this.#threads.push(threads);
    this.#span.push(span);
    this.#bits.push(bits);
    this.#used += host.cells.length * threads * span;
    this.#reserve();
    this.setFree(index, free);
    return index;
  }

  /** Adds a node as it is prepared for placing, with its networks, and returns its index. */
  addNode(node: PlacementHost): number {
    const index = this.add(node.host, node.host.online.minus(node.reserved).minus(node.owned));
    for (const [name, cells] of node.networks.physnets) {
      this.setNetwork(index, networkKey({ kind: 'physnet', physnet: name }), positionsOf(node.host, cells));
    }
    if (node.networks.tunnel) {
      this.setNetwork(index, networkKey({ kind: 'tunnel' }), positionsOf(node.host, node.networks.tunnel));
    }
    return index;
  }

  /** Replaces a host's free CPUs: unowned, not reserved, and without what is promised to pods in flight. */
  setFree(index: number, free: CpuSet): void {
    const start = this.#start[index] ?? 0;
    const end = this.#start[index + 1] ?? this.#used;
    this.#words.fill(0, start, end);
    const bits = this.#bits[index];
    if (!bits) return;
    for (const cpu of free) {
      const bit = bits[cpu] ?? -1;
      if (bit >= 0) this.#words[start + (bit >>> 5)]! |= 1 << (bit & 31);
    }
  }

  /** Says in which cells of a host a network is, as bits by the position of the cell; 0 for unknown. */
  setNetwork(index: number, network: string, cells: number): void {
    const hosts = this.#networks.get(network) ?? [];
    hosts[index] = cells;
    this.#networks.set(network, hosts);
  }

  /**
   * Writes for every host how many CPUs would be left where the pod could go, or NO_FIT, and returns how many fit.
   * @param out at least as long as there are hosts
   */
  fit(need: CoarseNeed, out: Int16Array): number {
    const networks = need.networks.map((network) => this.#networks.get(network) ?? []);
    let fitting = 0;
    for (let index = 0; index < this.#start.length; index++) {
      let cells = EVERYWHERE;
      for (const hosts of networks) cells &= hosts[index] || EVERYWHERE;
      const left = this.#room(index, cells, need.wholeCores) - need.cpus;
      out[index] = left < 0 ? NO_FIT : left;
      if (left >= 0) fitting++;
    }
    return fitting;
  }

  /** CPUs that are free in the given cells: in whole cores, or at all. */
  #room(index: number, cells: number, wholeCores: boolean): number {
    const words = this.#words;
    const threads = this.#threads[index]!;
    const span = this.#span[index]!;
    let room = 0;
    let at = this.#start[index]!;
    for (let cell = 0; cell < this.#cells[index]!; cell++) {
      if ((cells & (1 << cell)) !== 0) {
        for (let word = 0; word < span; word++) {
          room += wholeCores ? wholeIn(words, at + word, threads, span) : freeIn(words, at + word, threads, span);
        }
      }
      at += threads * span;
    }
    return room;
  }

  #reserve(): void {
    if (this.#used <= this.#words.length) return;
    const larger = new Uint32Array(Math.max(this.#used, this.#words.length * 2));
    larger.set(this.#words);
    this.#words = larger;
  }
}

function networkKey({ kind, physnet }: Pick<NetworkNeed, 'kind' | 'physnet'>): string {
  return kind === 'tunnel' ? 'tunnel' : `physnet ${physnet}`;
}

function positionsOf(host: Host, cells: CpuSet): number {
  return host.cells.reduce((bits, { id }, position) => (cells.has(id) ? bits | (1 << position) : bits), 0);
}

function wholeIn(words: Uint32Array, at: number, threads: number, span: number): number {
  let whole = words[at]!;
  for (let thread = 1; thread < threads; thread++) whole &= words[at + thread * span]!;
  return popCount(whole) * threads;
}

function freeIn(words: Uint32Array, at: number, threads: number, span: number): number {
  let free = 0;
  for (let thread = 0; thread < threads; thread++) free += popCount(words[at + thread * span]!);
  return free;
}

function popCount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
