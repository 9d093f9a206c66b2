import { bitCount, type Hint, isNarrower, type ProviderHints } from './hints.ts';

export const TOPOLOGY_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;
export type TopologyPolicy = (typeof TOPOLOGY_POLICIES)[number];

export interface NumaInfo {
  /** All NUMA nodes, as bits. */
  readonly all: number;
  /** The kernel's distance table by bit. Set if `prefer-closest-numa-nodes` is on, except under single-numa-node. */
  readonly distances?: readonly (readonly number[])[];
}

/**
 * Merges the hints of all providers into one and decides whether the pod is admitted. The kubelet iterates over every
 * combination, but its order of candidates is total: keeping the distinct results, at most two for each mask, is
 * enough.
 * Source: pkg/kubelet/cm/topologymanager/policy.go and policy_*.go.
 */
export function mergeHints(
  policy: TopologyPolicy,
  numa: NumaInfo,
  providers: readonly ProviderHints[],
): { readonly hint: Hint; readonly admit: boolean } {
  if (policy === 'none') return { hint: { mask: null, preferred: false }, admit: true };
  let lists = providers.flatMap(listsOf);
  if (policy === 'single-numa-node') lists = lists.map((list) => list.filter(isSingle));

  const widest = Math.max(0, ...lists.map(narrowestWidth));
  const closer = numa.distances ? closestBy(numa.distances) : isNarrower;
  let best: { mask: number; preferred: boolean } | undefined;
  for (const candidate of combinedHints(numa.all, lists)) {
    if (candidate.mask !== 0 && (!best || isBetter(candidate, best, widest, closer))) best = candidate;
  }
  const merged = best ?? { mask: numa.all, preferred: false };
  const anywhere = policy === 'single-numa-node' && merged.mask === numa.all;
  const hint = { mask: anywhere ? null : merged.mask, preferred: merged.preferred };
  return { hint, admit: policy === 'best-effort' || hint.preferred };
}

/** One list for each resource. A provider or resource without a preference becomes one preferred hint for any node. */
function listsOf(provider: ProviderHints): (readonly Hint[])[] {
  if (!provider || provider.size === 0) return [[{ mask: null, preferred: true }]];
  return [...provider.values()].map((hints) => {
    if (hints === null) return [{ mask: null, preferred: true }];
    return hints.length === 0 ? [{ mask: null, preferred: false }] : hints;
  });
}

function isSingle({ mask, preferred }: Hint): boolean {
  return preferred && (mask === null || bitCount(mask) === 1);
}

function narrowestWidth(list: readonly Hint[]): number {
  let narrowest: number | undefined;
  for (const { mask } of list) {
    if (mask !== null && (narrowest === undefined || isNarrower(mask, narrowest))) narrowest = mask;
  }
  return narrowest === undefined ? 0 : bitCount(narrowest);
}

interface Combined {
  readonly mask: number;
  readonly preferred: boolean;
  /** The affinity of all hints so far, if they agree; null if none has an affinity. */
  readonly shared: number | null;
}

/** The intersection of masks, preferred if all are preferred and agree. */
function combinedHints(all: number, lists: readonly (readonly Hint[])[]): Iterable<Combined> {
  let states: Iterable<Combined> = [{ mask: all, preferred: true, shared: null }];
  for (const list of lists) {
    const next = new Map<number, Combined>();
    for (const state of states) {
      for (const hint of list) {
        const combined = combine(state, hint);
        next.set(keyOf(combined), combined);
      }
    }
    states = next.values();
  }
  return states;
}

function combine(state: Combined, hint: Hint): Combined {
  const agrees = hint.mask === null || state.shared === null || state.shared === hint.mask;
  const preferred = state.preferred && hint.preferred && agrees;
  const mask = hint.mask === null ? state.mask : state.mask & hint.mask;
  return { mask, preferred, shared: preferred ? (state.shared ?? hint.mask) : null };
}

/** A number is much cheaper than a text. An affinity that all hints share is the mask of the result. */
function keyOf({ mask, preferred, shared }: Combined): number {
  return mask * 3 + (preferred ? 1 : 0) + (shared === null ? 0 : 1);
}

function isBetter(
  candidate: { mask: number; preferred: boolean },
  current: { mask: number; preferred: boolean },
  widest: number,
  closer: (mask: number, other: number) => boolean,
): boolean {
  if (candidate.preferred !== current.preferred) return candidate.preferred;
  if (candidate.mask === current.mask) return false;
  if (candidate.preferred) return closer(candidate.mask, current.mask);
  const width = bitCount(candidate.mask);
  const currentWidth = bitCount(current.mask);
  if (currentWidth > widest) return closer(candidate.mask, current.mask);
  if (width > widest || width < currentWidth) return false;
  return width > currentWidth || closer(candidate.mask, current.mask);
}

function closestBy(distances: readonly (readonly number[])[]) {
  return (mask: number, other: number): boolean => {
    if (bitCount(mask) !== bitCount(other)) return isNarrower(mask, other);
    const distance = averageDistance(distances, mask);
    const otherDistance = averageDistance(distances, other);
    return distance === otherDistance ? mask < other : distance < otherDistance;
  };
}

function averageDistance(distances: readonly (readonly number[])[], mask: number): number {
  let sum = 0;
  let pairs = 0;
  for (let a = mask; a !== 0; a &= a - 1) {
    for (let b = mask; b !== 0; b &= b - 1) {
      sum += distances[31 - Math.clz32(a & -a)]?.[31 - Math.clz32(b & -b)] ?? 0;
      pairs++;
    }
  }
  return pairs === 0 ? 0 : sum / pairs;
}
