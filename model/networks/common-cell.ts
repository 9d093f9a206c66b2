import type { CpuSet } from '../cpu-set.ts';
import { few } from '../errors.ts';
import { type Guest, type NodeRooms, type OutOfReach, outOfReach } from './reach.ts';
import type { ResolvedNetwork } from './resolve.ts';

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
const NAMED = 8;
const LONGEST_NAME = 200;

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
    const cells = required.map((one) =>
      one.kind === 'tunnel' ? node.networks.tunnel : node.networks.physnets.get(one.physnet),
    );
    if (cells.some((set) => set === undefined)) continue;
    const located = required.map((one, i) => ({ text: `interface ${textOf(one)}`, cells: cells[i]! }));
    // An unknown NUMA node does not constrain anything.
    const reason = outOfReach(
      guest,
      located.filter((one) => !one.cells.isEmpty),
      node,
    );
    if (reason === undefined) return undefined;
    reasons.push(reason);
  }
  const names = few(required.map(textOf), NAMED, LONGEST_NAME).join(', ');
  const isTooLarge = reasons.length > 0 && reasons.every(({ reason }) => reason === 'larger-than-cells');
  return { message: messageOf(nearest(reasons), names), isTooLarge };
}

/** The reason that needs the smallest correction. */
function nearest(reasons: readonly OutOfReach[]): OutOfReach | undefined {
  const [first] = [...reasons].sort((a, b) => effort(a) - effort(b));
  return first;
}

const effort = ({ reason, excess }: OutOfReach) =>
  excess ?? (reason === 'may-not-span' ? Number.MAX_SAFE_INTEGER - 1 : Number.MAX_SAFE_INTEGER);

function messageOf(found: OutOfReach | undefined, names: string): string {
  switch (found?.reason) {
    case undefined:
      return `no node that it can go to has all its required networks: ${names}`;
    case 'cannot-split':
      return `the required networks have no common NUMA node on any node that it can go to: ${names}`;
    case 'may-not-span':
      return `the kubelet may not span the NUMA nodes of its networks on any node that it can go to: ${found.text}`;
    case 'larger-than-cells':
      return `larger than the NUMA nodes of its networks on every node that it can go to: ${found.text}`;
  }
}

function isLocated(one: ResolvedNetwork): one is ResolvedNetwork & { readonly kind: 'physnet' | 'tunnel' } {
  return one.kind === 'physnet' || one.kind === 'tunnel';
}

function textOf(one: ResolvedNetwork): string {
  return `${one.name.slice(0, LONGEST_NAME)} (${one.kind === 'physnet' ? `physnet ${one.physnet}` : 'the tunnel'})`;
}
