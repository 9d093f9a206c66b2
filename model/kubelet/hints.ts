/** NUMA nodes as bits over the topology's `numaIds`, or null for any. Source: topology_manager.go, TopologyHint. */
export interface Hint {
  readonly mask: number | null;
  readonly preferred: boolean;
}

/** The hints of one provider for one resource: a list, an empty list (`[]`: impossible), or null (no preference). */
export type ResourceHints = readonly Hint[] | null;

/** The hints of one provider, by resource; null or empty if it has none. */
export type ProviderHints = ReadonlyMap<string, ResourceHints> | null;

/** The number of NUMA nodes in a mask of at most 32 bits. */
export function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** Whether a mask has fewer bits than another, or as many but lower ones. */
export function isNarrower(mask: number, other: number): boolean {
  const bits = bitCount(mask);
  const otherBits = bitCount(other);
  return bits === otherBits ? mask < other : bits < otherBits;
}

const subMasksOf = new Map<number, readonly number[]>();

/** Every non-empty subset of the bits of `mask`, by size, then by lowest bits first. Each hint needs them. */
export function subMasks(mask: number): readonly number[] {
  let masks = subMasksOf.get(mask);
  if (masks === undefined) {
    const subsets: number[] = [];
    for (let subset = mask; subset !== 0; subset = (subset - 1) & mask) subsets.push(subset);
    const lowestFirst = (a: number, b: number) => ((a & (a ^ b) & -(a ^ b)) === 0 ? 1 : -1);
    masks = subsets.sort((a, b) => bitCount(a) - bitCount(b) || lowestFirst(a, b));
    subMasksOf.set(mask, masks);
  }
  return masks;
}
