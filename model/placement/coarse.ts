import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { lastingCpus, podCpus } from '../kubelet/pod-request.ts';
import { type CoreLayout, layoutOf, NUMBERS_OF_CELL, writeRoom } from './core-layout.ts';
import type { NetworkNeed, PlacementHost, PlacementNeeds } from './needs.ts';

/** What a pod needs at the least, in the terms of a coarse fit. */
export interface CoarseNeed {
  /** Exclusive CPUs. */
  readonly cpus: number;
  /** They have to be whole cores. */
  readonly wholeCores: boolean;
  /** Required networks by the key they were set under. All the CPUs have to be near each of them. */
  readonly networks: readonly string[];
  /** CPUs of the largest container: where the kubelet aligns, they have to be in one cell. Default 0. */
  readonly largest?: number;
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
  const largest = request.containers.reduce((most, one) => (one.kind === 'init' ? most : Math.max(most, one.cpus)), 0);
  return { cpus, wholeCores, networks: required.map(networkKey), largest };
}

/** Does not fit. */
export const NO_FIT = -1;

/** All cells, where nothing narrows them. */
const EVERYWHERE = 0xffffffff;

/**
 * Free CPUs of many hosts by cell in one typed array, to tell in microseconds which hosts are worth an exact prediction.
 *
 * They are counted when a host changes (see CoreLayout), so that all a fit does is add and compare. A coarse fit is
 * necessary, never sufficient: a host that it rules out would be refused by the exact prediction too.
 */
export class CoarseFit {
  /** By cell of each host: free CPUs in whole free cores, and free CPUs. */
  #rooms = new Uint16Array(0);
  readonly #layouts: (CoreLayout | undefined)[] = [];
  /** By host: where its cells begin. */
  readonly #start: number[] = [];
  /** By host: a container that could be in one cell is in one cell, or is refused. */
  readonly #aligns: boolean[] = [];
  /** By host: CPUs that are promised and not yet taken out of its free ones. */
  readonly #assumed: number[] = [];
  /** Cells of a network by host. Undefined or 0: nothing is known there, so it constrains nothing. */
  readonly #networks = new Map<string, number[]>();
  #used = 0;

  get size(): number {
    return this.#start.length;
  }

  /** All that a fit may read of the hosts, for benchmarks. */
  get rooms(): Uint16Array {
    return this.#rooms.subarray(0, this.#used);
  }

  /**
   * Adds a host and returns its index.
   * @throws RangeError if it has more than 32 NUMA nodes
   */
  add(host: Host, free: CpuSet): number {
    const index = this.size;
    this.#put(index, host, free);
    return index;
  }

  /** Adds a node as it is prepared for placing, with its networks, and returns its index. */
  addNode(node: PlacementHost): number {
    const index = this.size;
    this.putNode(index, node);
    return index;
  }

  /**
   * Replaces the node of an index, or sets one that was not there; those before it that are not set fit nothing.
   * @throws RangeError if it has more than 32 NUMA nodes
   */
  putNode(index: number, node: PlacementHost): void {
    this.#put(index, node.host, node.host.online.minus(node.reserved).minus(node.owned));
    this.#aligns[index] = alignsContainers(node);
    for (const hosts of this.#networks.values()) if (index < hosts.length) hosts[index] = 0;
    for (const [name, cells] of node.networks.physnets) {
      this.setNetwork(index, networkKey({ kind: 'physnet', physnet: name }), positionsOf(node.host, cells));
    }
    if (node.networks.tunnel) {
      this.setNetwork(index, networkKey({ kind: 'tunnel' }), positionsOf(node.host, node.networks.tunnel));
    }
  }

  /** The host of an index is no more: it fits nothing until another takes its place. */
  clear(index: number): void {
    if (index < this.size) this.#layouts[index] = undefined;
  }

  /** Replaces a host's free CPUs: unowned and not reserved. */
  setFree(index: number, free: CpuSet): void {
    const layout = this.#layouts[index];
    if (layout) writeRoom(layout, this.#rooms, this.#start[index] ?? 0, free);
  }

  /** Says how many CPUs pods in flight will take on a host. */
  setAssumed(index: number, cpus: number): void {
    while (this.size <= index) this.#reserveIndex();
    this.#assumed[index] = cpus;
  }

  /** Says in which cells of a host a network is, as bits by the position of the cell; 0 for unknown. */
  setNetwork(index: number, network: string, cells: number): void {
    const hosts = this.#networks.get(network) ?? [];
    while (hosts.length < index) hosts.push(0);
    hosts[index] = cells;
    this.#networks.set(network, hosts);
  }

  /**
   * Writes for every host how many CPUs would be left where the pod could go, or NO_FIT, and returns how many fit.
   * @param out at least as long as there are hosts
   */
  fit(need: CoarseNeed, out: Int16Array): number {
    const fitOne = this.fitter(need);
    let fitting = 0;
    for (let index = 0; index < this.#start.length; index++) {
      const left = fitOne(index);
      out[index] = left;
      if (left >= 0) fitting++;
    }
    return fitting;
  }

  /** For one pod: how many CPUs would be left on the host of an index where the pod could go, or NO_FIT. */
  fitter(need: CoarseNeed): (index: number) => number {
    const networks = need.networks.map((network) => this.#networks.get(network) ?? []);
    return (index) => {
      const layout = this.#layouts[index];
      if (layout === undefined) return NO_FIT;
      let cells = EVERYWHERE;
      for (const hosts of networks) cells &= hosts[index] || EVERYWHERE;
      return this.#left(index, layout, cells, need);
    };
  }

  #left(index: number, layout: CoreLayout, cells: number, { cpus, wholeCores, largest = 0 }: CoarseNeed): number {
    const oneCell = this.#aligns[index] && largest <= layout.largestCell ? largest : 0;
    const left = this.#room(index, layout, cells, wholeCores, oneCell) - cpus;
    if (left < 0) return NO_FIT;
    const assumed = this.#assumed[index]!;
    if (assumed === 0) return left;
    // Pods in flight may take halves of cores where the kubelet allows it, so there only the threads are counted.
    const all = this.#room(index, layout, EVERYWHERE, false, 0);
    return all - assumed < cpus ? NO_FIT : Math.min(left, all - assumed - cpus);
  }

  /** CPUs that are free in the given cells, in whole cores or at all; none if no cell has the room for `oneCell`. */
  #room(index: number, layout: CoreLayout, cells: number, whole: boolean, oneCell: number): number {
    const rooms = this.#rooms;
    let room = 0;
    let most = 0;
    let at = this.#start[index]! + (whole ? 0 : 1);
    for (let cell = 0; cell < layout.cells; cell++, at += NUMBERS_OF_CELL) {
      if ((cells & (1 << cell)) === 0) continue;
      const here = rooms[at]!;
      room += here;
      if (here > most) most = here;
    }
    return most < oneCell ? NO_FIT : room;
  }

  #put(index: number, host: Host, free: CpuSet): void {
    const layout = layoutOf(host);
    while (this.size <= index) this.#reserveIndex();
    const before = this.#layouts[index];
    if (before?.cells !== layout.cells) {
      this.#start[index] = this.#used;
      this.#used += layout.cells * NUMBERS_OF_CELL;
      this.#reserve();
    }
    this.#layouts[index] = layout;
    this.setFree(index, free);
  }

  #reserveIndex(): void {
    this.#layouts.push(undefined);
    this.#start.push(0);
    this.#aligns.push(false);
    this.#assumed.push(0);
  }

  #reserve(): void {
    if (this.#used <= this.#rooms.length) return;
    const larger = new Uint16Array(Math.max(this.#used, this.#rooms.length * 2));
    larger.set(this.#rooms);
    this.#rooms = larger;
  }
}

/** Under these policies a container whose CPUs one NUMA node could hold by its make gets them from one, or is refused. */
function alignsContainers({ alignment }: PlacementHost): boolean {
  return alignment === 'single-numa-node' || alignment === 'restricted';
}

function networkKey({ kind, physnet }: Pick<NetworkNeed, 'kind' | 'physnet'>): string {
  return kind === 'tunnel' ? 'tunnel' : `physnet ${physnet}`;
}

function positionsOf(host: Host, cells: CpuSet): number {
  return host.cells.reduce((bits, { id }, position) => (cells.has(id) ? bits | (1 << position) : bits), 0);
}
