import { cpusText, numaNodesText } from '../amounts.ts';
import type { CpuSet } from '../cpu-set.ts';
import { few } from '../errors.ts';
import type { ResolvedNetwork } from './resolve.ts';

/** Whatever runs there. */
export interface NodeRooms {
  /** By NUMA node; in whole cores if the kubelet assigns only those. */
  readonly rooms: ReadonlyMap<number, number>;
  /** '' if unknown. */
  readonly alignment: string;
}

export interface Located {
  readonly text: string;
  /** Never empty. */
  readonly cells: CpuSet;
}

export interface Guest {
  readonly cpus: number;
  readonly spansCells: boolean;
}

/** Why even an empty node could not place the guest near all its networks. */
export interface OutOfReach {
  readonly reason: 'cannot-split' | 'may-not-span' | 'larger-than-cells';
  readonly text: string;
  /** Number of CPUs above the limit; undefined if fewer CPUs would not help. */
  readonly excess?: number;
}

/**
 * Whether a node can ever place a guest near all its required networks, whatever runs there. A guest with one cell
 * needs all its CPUs near every network; one that sees its NUMA nodes needs some near each. Networks without a common
 * NUMA node contradict each other: `restricted` and `single-numa-node` refuse the pod, other policies choose any CPUs,
 * which is certain to be near each network only for a guest too large to miss one.
 */
export function outOfReach(guest: Guest, located: readonly Located[], node: NodeRooms): OutOfReach | undefined {
  const { cpus, spansCells } = guest;
  const [first, ...rest] = located;
  if (first === undefined || cpus === 0) return undefined;
  const shared = rest.reduce((common, { cells }) => common.intersect(cells), first.cells);
  if (spansCells) return shared.isEmpty ? uncertain(cpus, located, node) : undefined;
  if (shared.isEmpty) return cannotSplit(`${locationsText(located)}, and they have no common NUMA node`);
  const room = roomOn(node, (cell) => shared.has(cell));
  if (cpus <= room) return undefined;
  const text = `${locationsText(located)}, where pods can have ${cpusText(room)} at most, and it requests ${cpus}`;
  return { reason: 'larger-than-cells', text, excess: cpus - room };
}

function cannotSplit(why: string): OutOfReach {
  return { reason: 'cannot-split', text: `the kubelet cannot split the CPUs: ${why}` };
}

function uncertain(cpus: number, located: readonly Located[], node: NodeRooms): OutOfReach | undefined {
  if (node.alignment === 'restricted' || node.alignment === 'single-numa-node') {
    const policy = `topologyManagerPolicy ${node.alignment}`;
    return cannotSplit(`${locationsText(located)}; ${policy} refuses a pod with devices on different NUMA nodes`);
  }
  const away = located.map(({ text, cells }) => ({ text, room: roomOn(node, (cell) => !cells.has(cell)) }));
  const widest = away.reduce((most, network) => (network.room > most.room ? network : most));
  if (cpus > widest.room) return undefined;
  const text =
    `the kubelet may put all ${cpusText(cpus)} away from ${widest.text}: ${locationsText(located)}; ` +
    `the guest needs more than ${cpusText(widest.room)} to be near all of them for certain`;
  return { reason: 'may-not-span', text };
}

const MAX_NAMED_LOCATIONS = 4;
const MAX_LOCATION_CHARACTERS = 320;

function locationsText(located: readonly Located[]): string {
  const texts = located.map(({ text, cells }) => `${text} is on ${numaNodesText(cells)}`);
  return few(texts, MAX_NAMED_LOCATIONS, MAX_LOCATION_CHARACTERS).join(', ');
}

function roomOn({ rooms }: NodeRooms, counts: (cell: number) => boolean): number {
  return [...rooms].reduce((sum, [cell, room]) => (counts(cell) ? sum + room : sum), 0);
}

/** An empty set: the NIC exists and its NUMA node is unknown. */
export interface NodeNetworks {
  readonly physnets: ReadonlyMap<string, CpuSet>;
  readonly tunnel: CpuSet | undefined;
}

export interface NodeReach extends NodeRooms {
  readonly networks: NodeNetworks;
}

const MAX_NAMED_NETWORKS = 8;
const MAX_NAME_CHARACTERS = 200;

/**
 * Undefined if one could, and without nodes.
 * @returns `isTooLarge`: whether some nodes have all the networks, but the guest is too large for each of them
 */
export function reachFinding(networks: readonly ResolvedNetwork[], guest: Guest, nodes: readonly NodeReach[]) {
  const required = networks.filter(({ affinity }) => affinity === 'required').filter(isLocated);
  if (required.length === 0 || nodes.length === 0) return undefined;
  const reasons: OutOfReach[] = [];
  for (const node of nodes) {
    const cells = required.map((network) =>
      network.kind === 'tunnel' ? node.networks.tunnel : node.networks.physnets.get(network.physnet),
    );
    if (cells.some((set) => set === undefined)) continue;
    const all = required.map((network, i) => ({ text: `interface ${textOf(network)}`, cells: cells[i]! }));
    // An unknown NUMA node does not constrain anything.
    const located = all.filter((network) => !network.cells.isEmpty);
    const reason = outOfReach(guest, located, node);
    if (reason === undefined) return undefined;
    reasons.push(reason);
  }
  const names = few(required.map(textOf), MAX_NAMED_NETWORKS, MAX_NAME_CHARACTERS).join(', ');
  const isTooLarge = reasons.length > 0 && reasons.every(({ reason }) => reason === 'larger-than-cells');
  const [nearest] = reasons.sort((a, b) => effort(a) - effort(b));
  return { message: messageOf(nearest, names), isTooLarge };
}

function effort({ reason, excess }: OutOfReach): number {
  return excess ?? (reason === 'may-not-span' ? Number.MAX_SAFE_INTEGER - 1 : Number.MAX_SAFE_INTEGER);
}

function messageOf(outOfReach: OutOfReach | undefined, names: string): string {
  switch (outOfReach?.reason) {
    case undefined:
      return `no node that it can go to has all its required networks: ${names}`;
    case 'cannot-split':
      return `the required networks have no common NUMA node on any node that it can go to: ${names}`;
    case 'may-not-span':
      return `the kubelet may not span the NUMA nodes of its networks on any node that it can go to: ${outOfReach.text}`;
    case 'larger-than-cells':
      return `larger than the NUMA nodes of its networks on every node that it can go to: ${outOfReach.text}`;
  }
}

function isLocated(network: ResolvedNetwork): network is ResolvedNetwork & { readonly kind: 'physnet' | 'tunnel' } {
  return network.kind === 'physnet' || network.kind === 'tunnel';
}

function textOf(network: ResolvedNetwork): string {
  return `${network.name.slice(0, MAX_NAME_CHARACTERS)} (${network.kind === 'physnet' ? `physnet ${network.physnet}` : 'the tunnel'})`;
}
