import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { lastingCpus, podCpus } from '../kubelet/pod-request.ts';
import { type CoreLayout, layoutOf, NUMBERS_OF_CELL, writeRoom } from './core-layout.ts';
import type { NetworkNeed, PlacementHost, PlacementNeeds } from './needs.ts';

/** The least that a pod needs, for a coarse fit. */
export interface CoarseNeed {
  /** Number of exclusive CPUs. */
  readonly cpus: number;
  /** Whether they must be whole cores. */
  readonly wholeCores: boolean;
  /** Keys of required networks, as in setNetwork. All CPUs must be near each of them. */
  readonly networks: readonly string[];
  /** Number of CPUs of the largest container. If the kubelet aligns, they must be in one cell. Default 0. */
  readonly largest?: number;
}

/**
 * The least that a pod needs on any node. A guest that spans NUMA nodes needs only some CPUs near each network, so its
 * networks do not limit where its CPUs are. Init containers may run anywhere and on partial cores.
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

/** The pod does not fit. */
export const NO_FIT = -1;

/** All cells: no network restricts them. */
const EVERYWHERE = 0xffffffff;

/**
 * Free CPUs of many hosts by cell in one typed array. It finds in microseconds the hosts for which an exact prediction
 * is worthwhile.
 *
 * It counts CPUs when a host changes (see CoreLayout), so a fit only adds and compares. A coarse fit is necessary but
 * not sufficient: the exact prediction would also refuse a host that it excludes.
 */
export class CoarseFit {
  /** For each cell of each host: free CPUs in whole free cores, and all free CPUs. */
  #rooms = new Uint16Array(0);
  readonly #layouts: (CoreLayout | undefined)[] = [];
  /** For each host, the index of its first cell. */
  readonly #start: number[] = [];
  /** For each host, whether a container that fits into one cell is either placed in one cell or refused. */
  readonly #aligns: boolean[] = [];
  /** For each host, CPUs that are reserved and still among its free ones. */
  readonly #assumed: number[] = [];
  /** For each network and host, the cells of the network. Undefined or 0: unknown, so there is no constraint. */
  readonly #networks = new Map<string, number[]>();
  #used = 0;

  get size(): number {
    return this.#start.length;
  }

  /** The array that a fit reads, for benchmarks. */
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

  /** Adds a node that is prepared for placement, with its networks, and returns its index. */
  addNode(node: PlacementHost): number {
    const index = this.size;
    this.putNode(index, node);
    return index;
  }

  /**
   * Sets the node of an index. Lower indexes that are not set fit nothing.
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

  /** Removes the host of an index, which then fits nothing until it is set again. */
  clear(index: number): void {
    if (index < this.size) this.#layouts[index] = undefined;
  }

  /** Replaces a host's free CPUs, which have no owner and are not reserved for the system. */
  setFree(index: number, free: CpuSet): void {
    const layout = this.#layouts[index];
    if (layout) writeRoom(layout, this.#rooms, this.#start[index] ?? 0, free);
  }

  /** Sets the number of CPUs that pods in flight will take on a host. */
  setAssumed(index: number, cpus: number): void {
    while (this.size <= index) this.#reserveIndex();
    this.#assumed[index] = cpus;
  }

  /** Sets the cells of a network on a host, as bits by the position of the cell; 0 for unknown. */
  setNetwork(index: number, network: string, cells: number): void {
    const hosts = this.#networks.get(network) ?? [];
    while (hosts.length < index) hosts.push(0);
    hosts[index] = cells;
    this.#networks.set(network, hosts);
  }

  /**
   * Writes for every host the number of CPUs that would be left in the cells where the pod fits, or NO_FIT. Returns the
   * number of hosts that fit.
   * @param out has at least one entry for each host
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

  /**
   * For one pod, a function of a host's index: the number of CPUs that would be left in the cells where the pod fits,
   * or NO_FIT.
   */
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
    // Pods in flight may take partial cores if the kubelet allows it, so only threads are counted there.
    const all = this.#room(index, layout, EVERYWHERE, false, 0);
    return all - assumed < cpus ? NO_FIT : Math.min(left, all - assumed - cpus);
  }

  /**
   * Number of free CPUs in the given cells, in whole cores or in total; 0 if no single cell has room for `oneCell`
   * CPUs.
   */
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

/** Whether the policy places a container in one NUMA node, if one is large enough for it, or refuses it. */
function alignsContainers({ alignment }: PlacementHost): boolean {
  return alignment === 'single-numa-node' || alignment === 'restricted';
}

function networkKey({ kind, physnet }: Pick<NetworkNeed, 'kind' | 'physnet'>): string {
  return kind === 'tunnel' ? 'tunnel' : `physnet ${physnet}`;
}

function positionsOf(host: Host, cells: CpuSet): number {
  return host.cells.reduce((bits, { id }, position) => (cells.has(id) ? bits | (1 << position) : bits), 0);
}
