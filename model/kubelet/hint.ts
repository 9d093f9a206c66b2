/**
 * A possible origin of a resource: a set of NUMA nodes, as bits over the topology's `numaIds`, or null for any node.
 * Source: pkg/kubelet/cm/topologymanager/topology_manager.go, TopologyHint.
 */
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

const masksOfWidth = new Map<number, readonly number[]>();

/** Every non-empty subset of the bits of `mask`, by size, then by lowest bits first. */
export function subMasks(mask: number): readonly number[] {
  const bits: number[] = [];
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits.push(rest & -rest);
  return masksUpTo(bits.length).map((packed) => {
    let subset = 0;
    for (let i = 0; i < bits.length; i++) if ((packed & (1 << i)) !== 0) subset |= bits[i]!;
    return subset;
  });
}

/** All masks over the first `width` bits in that order. Cached, because every hint of every pod needs them. */
function masksUpTo(width: number): readonly number[] {
  let masks = masksOfWidth.get(width);
  if (!masks) {
    masks = Array.from({ length: 2 ** width - 1 }, (_, i) => i + 1).sort((a, b) => {
      const bits = bitCount(a) - bitCount(b);
      return bits === 0 ? reversed(b, width) - reversed(a, width) : bits;
    });
    masksOfWidth.set(width, masks);
  }
  return masks;
}

function reversed(mask: number, width: number): number {
  let result = 0;
  for (let i = 0; i < width; i++) if ((mask & (1 << i)) !== 0) result |= 1 << (width - 1 - i);
  return result;
}
