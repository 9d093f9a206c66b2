import { bitCount, type Hint, isNarrower, subMasks } from './hints.ts';

export type MemoryHint = Hint & { readonly mask: number };

interface MemoryTable {
  readonly allocatable: number;
  readonly free: number;
}

interface MemoryCell {
  /** Number of blocks that include the node. */
  readonly blocks: number;
  /** The NUMA nodes in the same group as bits, including this one. */
  readonly group: number;
  readonly tables: ReadonlyMap<string, MemoryTable>;
  /** Bytes by type that the memory manager counts as free and the kernel does not: processes took them unasked. */
  readonly unaccounted?: ReadonlyMap<string, number> | undefined;
}

/** Memory of one kind that a container has under a NUMA mask. */
export interface MemoryBlock {
  readonly mask: number;
  readonly type: string;
  /** Bytes; less than requested if a later container reuses part of an init container's block. */
  readonly size: number;
}

type PodBlocks = ReadonlyMap<string, readonly MemoryBlock[]>;

/** Cells are indexed by NUMA bit. */
export interface MemoryState {
  readonly cells: readonly MemoryCell[];
  readonly blocks: ReadonlyMap<string, PodBlocks>;
}

/** In bytes, from cAdvisor and the kubelet's reservedMemory. */
export interface CellMemory {
  readonly id: number;
  /** Including huge pages. */
  readonly memory: number;
  /** Bytes in huge pages, by resource name: `hugepages-1Gi`. */
  readonly hugePages?: Readonly<Record<string, number>> | undefined;
  /** Bytes in huge pages that are free by the kernel. */
  readonly freePages?: Readonly<Record<string, number>> | undefined;
  readonly reserved?: Readonly<Record<string, number>> | undefined;
}

/** @param described bytes of each NUMA node. Source: memorymanager/policy_static.go, getDefaultMachineState. */
export function initialMemory(numaIds: readonly number[], described: readonly CellMemory[]): MemoryState {
  const cells = numaIds.map((id, bit): MemoryCell => {
    const cell = described.find((entry) => entry.id === id);
    const pages = Object.entries(cell?.hugePages ?? {});
    const inPages = pages.reduce((sum, [, bytes]) => sum + bytes, 0);
    const sizes: [string, number][] = [...pages, ['memory', (cell?.memory ?? 0) - inPages]];
    const tables = sizes.map(([type, bytes]): [string, MemoryTable] => {
      const allocatable = bytes - (cell?.reserved?.[type] ?? 0);
      return [type, { allocatable, free: allocatable }];
    });
    return { blocks: 0, group: 1 << bit, tables: new Map(tables) };
  });
  return { cells, blocks: new Map() };
}

/**
 * Enough bytes are free, and no node would be in two groups. @param reusable bytes of init containers under that mask
 * Source: pkg/kubelet/cm/memorymanager/policy_static.go, calculateHints.
 */
export function memoryHints(
  { cells }: MemoryState,
  request: ReadonlyMap<string, number>,
  reusable: (mask: number, type: string) => number,
): MemoryHint[] {
  let narrowest = cells.length;
  const masks: number[] = [];
  for (const mask of subMasks((1 << cells.length) - 1)) {
    const width = bitCount(mask);
    const amounts = [...request];
    if (amounts.some(([type, bytes]) => sum(cells, mask, type, 'allocatable') < bytes)) continue;
    narrowest = Math.min(narrowest, width);
    if (!mayGroup(cells, mask)) continue;
    if (amounts.every(([type, bytes]) => sum(cells, mask, type, 'free') + reusable(mask, type) >= bytes))
      masks.push(mask);
  }
  return masks.map((mask) => ({ mask, preferred: bitCount(mask) === narrowest }));
}

/** A node in a group accepts no single-node block, and a node with blocks joins no other group. */
function mayGroup(cells: readonly MemoryCell[], mask: number): boolean {
  if (bitCount(mask) === 1) return bitCount(cells[31 - Math.clz32(mask)]!.group) === 1;
  return !splitsGroup(cells, mask);
}

/** Source: pkg/kubelet/cm/memorymanager/policy_static.go, isAffinityViolatingNUMAAllocations. */
export function splitsGroup(cells: readonly MemoryCell[], mask: number): boolean {
  if (bitCount(mask) === 1) return false;
  return cells.some((cell, bit) => (mask & (1 << bit)) !== 0 && cell.blocks > 0 && cell.group !== mask);
}

/** Whether the NUMA nodes of a mask together have the requested free bytes of every memory kind. */
export function satisfies({ cells }: MemoryState, mask: number, request: ReadonlyMap<string, number>): boolean {
  return [...request].every(([type, bytes]) => sum(cells, mask, type, 'free') >= bytes);
}

/** Source: pkg/kubelet/cm/memorymanager/policy_static.go, findBestHint. */
export function bestHint(hints: readonly MemoryHint[]): MemoryHint | undefined {
  const isBetter = (hint: MemoryHint, best: MemoryHint) =>
    hint.preferred === best.preferred ? isNarrower(hint.mask, best.mask) : hint.preferred;
  return hints.reduce<MemoryHint | undefined>((best, hint) => (best && !isBetter(hint, best) ? best : hint), undefined);
}

/** In ascending order of the nodes. Source: pkg/kubelet/cm/memorymanager/policy_static.go, updateMachineState. */
export function takeMemory(cells: readonly MemoryCell[], { mask, type, size }: MemoryBlock): MemoryCell[] {
  let open = size;
  return cells.map((cell, bit) => {
    if ((mask & (1 << bit)) === 0) return cell;
    const allocated = Math.min(open, Math.max(0, cell.tables.get(type)?.free ?? 0));
    open -= allocated;
    return { ...cell, blocks: cell.blocks + 1, group: mask, tables: withFree(cell, type, -allocated) };
  });
}

/** Returns a block's bytes in the same order. Source: pkg/kubelet/cm/memorymanager/policy_static.go, releaseMemory. */
export function releaseMemory(cells: readonly MemoryCell[], { mask, type, size }: MemoryBlock): MemoryCell[] {
  let open = size;
  return cells.map((cell, bit) => {
    if ((mask & (1 << bit)) === 0) return cell;
    const table = cell.tables.get(type);
    const released = table ? Math.min(open, table.allocatable - table.free) : 0;
    open -= released;
    const blocks = cell.blocks - 1;
    return { ...cell, blocks, group: blocks === 0 ? 1 << bit : cell.group, tables: withFree(cell, type, released) };
  });
}

function withFree(cell: MemoryCell, type: string, change: number): ReadonlyMap<string, MemoryTable> {
  const table = cell.tables.get(type);
  if (!table || change === 0) return cell.tables;
  return new Map(cell.tables).set(type, { ...table, free: table.free + change });
}

function sum(cells: readonly MemoryCell[], mask: number, type: string, key: 'free' | 'allocatable'): number {
  return cells.reduce(
    (total, cell, bit) => ((mask & (1 << bit)) === 0 ? total : total + (cell.tables.get(type)?.[key] ?? 0)),
    0,
  );
}
