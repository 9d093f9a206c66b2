import type { CpuSet } from '../cpu-set.ts';
import { bitCount, type Hint, subMasks } from './hint.ts';
import type { CpuOptions } from './options.ts';
import { type CpuTopology, countByCell } from './topology.ts';

/**
 * The sets of NUMA nodes that could provide the CPUs of a container. A set is preferred if it is as narrow as the
 * *total* CPUs allow, including used and reserved ones. A pod may therefore be refused although enough CPUs are free.
 *
 * @param available CPUs that may be taken
 * @param reusable CPUs of this pod's init containers, which every hint must include
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, generateCPUTopologyHints.
 */
export function cpuHints(
  topology: CpuTopology,
  options: CpuOptions,
  available: CpuSet,
  reusable: CpuSet,
  request: number,
): Hint[] {
  const total = topology.cells.members.map((members) => members.length);
  const free = countByCell(topology, available);
  const reuse = countByCell(topology, reusable);
  let reuseCells = 0;
  let allCells = 0;
  reuse.forEach((count, cell) => {
    allCells |= 1 << cell;
    if (count > 0) reuseCells |= 1 << cell;
  });

  let narrowest = total.length;
  const masks: number[] = [];
  for (const mask of subMasks(allCells)) {
    const width = bitCount(mask);
    if (width < narrowest && sumOver(mask, total) >= request) narrowest = width;
    if ((reuseCells & ~mask) !== 0) continue;
    if (sumOver(mask, reuse) + sumOver(mask, free) >= request) masks.push(mask);
  }
  return masks.map((mask) => ({
    mask: toNumaMask(topology, mask),
    preferred: bitCount(mask) === narrowest || (options.alignBySocket && isSocketAligned(topology, mask, narrowest)),
  }));
}

/** Whether a mask has just as many sockets as `narrowest` cells need. */
function isSocketAligned(topology: CpuTopology, mask: number, narrowest: number): boolean {
  const cellsPerSocket = Math.floor(topology.counts.cells / topology.counts.sockets);
  if (!(cellsPerSocket > 0)) return false;
  const sockets = new Set<number>();
  for (const cell of cellsIn(mask)) {
    for (const position of topology.cells.members[cell]!) sockets.add(topology.sockets.of[position]!);
  }
  return sockets.size === Math.floor((narrowest + cellsPerSocket - 1) / cellsPerSocket);
}

/** The dense cell numbers of a mask over dense cells. */
function cellsIn(mask: number): number[] {
  const cells: number[] = [];
  for (let rest = mask; rest !== 0; rest &= rest - 1) cells.push(31 - Math.clz32(rest & -rest));
  return cells;
}

function sumOver(mask: number, counts: ArrayLike<number>): number {
  let sum = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) sum += counts[31 - Math.clz32(rest & -rest)]!;
  return sum;
}

function toNumaMask(topology: CpuTopology, mask: number): number {
  let numa = 0;
  for (const cell of cellsIn(mask)) numa |= 1 << topology.bitOfCell[cell]!;
  return numa;
}
