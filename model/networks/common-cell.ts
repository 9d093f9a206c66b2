import { few } from '../brief.ts';
import type { CpuSet } from '../cpu-set.ts';
import type { ResolvedNetwork } from './resolve.ts';

/** NUMA nodes by network, as one node reports them. An empty set: the NIC is there, its NUMA node is not known. */
export interface NodeNetworks {
  readonly physnets: ReadonlyMap<string, CpuSet>;
  readonly tunnel: CpuSet | undefined;
}

/**
 * Whether some node could keep all required networks within one NUMA node.
 * `together`: yes. `apart`: nodes have them all, but always on different NUMA nodes, and the kubelet cannot split a
 * container. `nowhere`: no node has them all. With no required network: `together`.
 */
export type Togetherness = 'together' | 'apart' | 'nowhere';

export function togetherness(networks: readonly ResolvedNetwork[], nodes: Iterable<NodeNetworks>): Togetherness {
  const required = networks.filter(({ affinity }) => affinity === 'required').filter(isLocated);
  if (required.length === 0) return 'together';
  let answer: Togetherness = 'nowhere';
  for (const node of nodes) {
    const cells = required.map((one) => (one.kind === 'tunnel' ? node.tunnel : node.physnets.get(one.physnet)));
    if (cells.some((set) => set === undefined)) continue;
    if (shareOne(cells.filter((set) => set !== undefined))) return 'together';
    answer = 'apart';
  }
  return answer;
}

function isLocated(one: ResolvedNetwork): one is ResolvedNetwork & { readonly kind: 'physnet' | 'tunnel' } {
  return one.kind === 'physnet' || one.kind === 'tunnel';
}

/** Unknown NUMA nodes constrain nothing. */
function shareOne(sets: readonly CpuSet[]): boolean {
  const known = sets.filter((set) => !set.isEmpty);
  const [first, ...rest] = known;
  return first === undefined || !rest.reduce((common, set) => common.intersect(set), first).isEmpty;
}

/** Networks that are named in the finding, and characters of each. */
const NAMED = 8;
const LONGEST_NAME = 200;

/** What to say where required networks have no NUMA node in common, or no node has them all; else undefined. */
export function apartFinding(networks: readonly ResolvedNetwork[], nodes: Iterable<NodeNetworks>): string | undefined {
  const all = [...nodes];
  const found = all.length === 0 ? 'together' : togetherness(networks, all);
  if (found === 'together') return undefined;
  const required = networks
    .filter(({ affinity }) => affinity === 'required')
    .filter(isLocated)
    .map((one) => `${one.name} (${one.kind === 'tunnel' ? 'the tunnel' : `physnet ${one.physnet}`})`);
  const names = few(required, NAMED, LONGEST_NAME).join(', ');
  return found === 'nowhere'
    ? `no node that it can go to has all its required networks: ${names}`
    : `the kubelet cannot split: on no node that it can go to do its required networks share a NUMA node: ${names}`;
}
