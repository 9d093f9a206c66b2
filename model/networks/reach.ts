import { cpusText, numaNodesText } from '../amounts.ts';
import type { CpuSet } from '../cpu-set.ts';
import { few } from '../errors.ts';
import type { ResolvedNetwork } from './resolve.ts';

/** Properties of a node that limit where its kubelet can assign CPUs, whatever runs there. */
export interface NodeRooms {
  /** By NUMA node: number of CPUs that pods can have there, in whole cores if the kubelet assigns only those. */
  readonly rooms: ReadonlyMap<number, number>;
  /** Policy of the topology manager; '' if unknown. */
  readonly alignment: string;
}

/** A required network and its place on the node. */
export interface Located {
  /** Text for messages. */
  readonly text: string;
  /** NUMA nodes; never empty. */
  readonly cells: CpuSet;
}

/** Number of CPUs that a pod requests, and whether its guest sees the NUMA nodes that they span. */
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
 * Whether a node can ever place a guest near all its required networks. It depends only on the node's hardware and
 * configuration, so the result is the same for an empty and a full node.
 *
 * A guest with one cell needs all its CPUs near every network: on NUMA nodes that the networks share and that are large
 * enough. A guest that sees its NUMA nodes needs some of its CPUs near each network. If the networks share a NUMA node,
 * their devices make the kubelet choose it. If not, the devices contradict each other: `restricted` and
 * `single-numa-node` refuse the pod, and other policies choose any CPUs. Then a guest is certain to be near all its
 * networks only if it is so large that any placement includes each of them.
 */
export function outOfReach(guest: Guest, located: readonly Located[], node: NodeRooms): OutOfReach | undefined {
  const [first, ...rest] = located;
  if (first === undefined || guest.cpus === 0) return undefined;
  const shared = rest.reduce((common, { cells }) => common.intersect(cells), first.cells);
  if (!guest.spansCells) return shared.isEmpty ? apart(located) : tooLarge(guest, located, shared, node);
  return shared.isEmpty ? uncertain(guest, located, node) : undefined;
}

function apart(located: readonly Located[]): OutOfReach {
  return {
    reason: 'cannot-split',
    text: `the kubelet cannot split the CPUs: ${places(located)}, and they have no common NUMA node`,
  };
}

function tooLarge(
  { cpus }: Guest,
  located: readonly Located[],
  shared: CpuSet,
  node: NodeRooms,
): OutOfReach | undefined {
  const room = roomOn(node, (cell) => shared.has(cell));
  if (cpus <= room) return undefined;
  const text = `${places(located)}, where pods can have ${cpusText(room)} at most, and it requests ${cpus}`;
  return { reason: 'larger-than-cells', text, excess: cpus - room };
}

function uncertain({ cpus }: Guest, located: readonly Located[], node: NodeRooms): OutOfReach | undefined {
  if (node.alignment === 'restricted' || node.alignment === 'single-numa-node') {
    const why = `topologyManagerPolicy ${node.alignment} refuses a pod with devices on different NUMA nodes`;
    return { reason: 'cannot-split', text: `the kubelet cannot split the CPUs: ${places(located)}; ${why}` };
  }
  const away = located.map(({ text, cells }) => ({ text, room: roomOn(node, (cell) => !cells.has(cell)) }));
  const widest = away.reduce((most, network) => (network.room > most.room ? network : most));
  if (cpus > widest.room) return undefined;
  const text =
    `the kubelet may put all ${cpusText(cpus)} away from ${widest.text}: ${places(located)}; ` +
    `the guest needs more than ${cpusText(widest.room)} to be near all of them for certain`;
  return { reason: 'may-not-span', text };
}

/** Networks in a message, and characters of each. */
const MAX_PLACES = 4;
const MAX_PLACE_CHARACTERS = 320;

function places(located: readonly Located[]): string {
  const texts = located.map(({ text, cells }) => `${text} is on ${numaNodesText(cells)}`);
  return few(texts, MAX_PLACES, MAX_PLACE_CHARACTERS).join(', ');
}

function roomOn({ rooms }: NodeRooms, counts: (cell: number) => boolean): number {
  return [...rooms].reduce((sum, [cell, room]) => (counts(cell) ? sum + room : sum), 0);
}

/** NUMA nodes of each network, as reported by one node. An empty set: the NIC exists and its NUMA node is unknown. */
export interface NodeNetworks {
  readonly physnets: ReadonlyMap<string, CpuSet>;
  readonly tunnel: CpuSet | undefined;
}

/** Properties of a node that decide whether it can place a guest near its networks. */
export interface NodeReach extends NodeRooms {
  readonly networks: NodeNetworks;
}

export interface ReachFinding {
  readonly message: string;
  /** Whether some nodes have all the networks, but the guest is too large for each of them. */
  readonly isTooLarge: boolean;
}

/** Number of networks in a finding, and characters of each name. */
const MAX_NAMED_NETWORKS = 8;
const MAX_NAME_CHARACTERS = 200;

/**
 * Why none of the nodes could ever place a guest near all its required networks; undefined if one could. Without nodes
 * there is no finding.
 */
export function reachFinding(
  networks: readonly ResolvedNetwork[],
  guest: Guest,
  nodes: Iterable<NodeReach>,
): ReachFinding | undefined {
  const required = networks.filter(({ affinity }) => affinity === 'required').filter(isLocated);
  const all = [...nodes];
  if (required.length === 0 || all.length === 0) return undefined;
  const reasons: OutOfReach[] = [];
  for (const node of all) {
    const cells = required.map((network) =>
      network.kind === 'tunnel' ? node.networks.tunnel : node.networks.physnets.get(network.physnet),
    );
    if (cells.some((set) => set === undefined)) continue;
    const located = required.map((network, i) => ({ text: `interface ${textOf(network)}`, cells: cells[i]! }));
    // An unknown NUMA node does not constrain anything.
    const reason = outOfReach(
      guest,
      located.filter((network) => !network.cells.isEmpty),
      node,
    );
    if (reason === undefined) return undefined;
    reasons.push(reason);
  }
  const names = few(required.map(textOf), MAX_NAMED_NETWORKS, MAX_NAME_CHARACTERS).join(', ');
  const isTooLarge = reasons.length > 0 && reasons.every(({ reason }) => reason === 'larger-than-cells');
  return { message: messageOf(nearest(reasons), names), isTooLarge };
}

const effort = ({ reason, excess }: OutOfReach) =>
  excess ?? (reason === 'may-not-span' ? Number.MAX_SAFE_INTEGER - 1 : Number.MAX_SAFE_INTEGER);

/** The reason that needs the smallest correction. */
function nearest(reasons: readonly OutOfReach[]): OutOfReach | undefined {
  const [first] = [...reasons].sort((a, b) => effort(a) - effort(b));
  return first;
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
