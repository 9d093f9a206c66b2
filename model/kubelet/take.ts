import { CpuSet, unionOf } from '../cpu-set.ts';
import { Accumulator, type Sorting } from './accumulator.ts';
import type { CpuTopology } from './topology.ts';

/** The message is the kubelet's own. */
export class TakeError extends Error {}

/** The kubelet would never end the allocation, and admit no further pod until it is restarted. */
export class HangError extends Error {}

/**
 * Whole NUMA nodes and sockets, whole caches if preferred, whole cores, then threads. @throws TakeError if too few
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, takeByTopologyNUMAPacked.
 */
export function takePacked(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  sorting: Sorting,
  preferUncore: boolean,
): CpuSet {
  if (count < 1) return CpuSet.EMPTY;
  const acc = accumulate(topology, available, count, sorting);
  const steps = [
    ...acc.levels.map((level) => () => acc.takeWhole(level)),
    () => preferUncore && acc.takeUncores(),
    () => sorting === 'packed' && acc.takeWhole(topology.cores),
    () => acc.takeRemaining(),
  ];
  for (const step of steps) {
    step();
    if (acc.isSatisfied) return acc.result;
  }
  throw new TakeError('failed to allocate cpus');
}

/** @throws TakeError if too few are available */
function accumulate(topology: CpuTopology, available: CpuSet, count: number, sorting: Sorting): Accumulator {
  const acc = new Accumulator(topology, available, count, sorting);
  if (!acc.isFailed) return acc;
  throw new TakeError(`not enough cpus available to satisfy request: requested=${count}, available=${available.size}`);
}

/** With more NUMA nodes, slices of the kubelet's combinations share memory: the result depends on memory layout. */
export const MAX_DISTRIBUTED_CELLS = 4;

/** An equal share for each cell of the combination, and the remainder in groups over `rest`. */
interface Spread {
  readonly balance: number;
  readonly combination: readonly number[];
  /** CPUs of each cell before the remainder. */
  readonly each: number;
  readonly rest: readonly number[];
  readonly isInOneSocket: boolean;
}

interface Distribution {
  /** Whether the room for the remainder is counted in CPUs or in whole groups. */
  readonly remainder: 'cpus' | 'groups';
  /** Smallest number of NUMA nodes, where the free ones allow it. */
  readonly minCells: number;
  /** Whether cells of one socket are preferred, and cells may give less than an equal share. */
  readonly prefersSocket?: boolean;
}

interface Request extends Distribution {
  readonly count: number;
  readonly groupSize: number;
  /** Number of free CPUs by cell, for every cell that has one, in the accumulator's order. */
  readonly free: ReadonlyMap<number, number>;
  readonly topology: CpuTopology;
}

/**
 * Takes CPUs evenly from as few NUMA nodes as can share the request, in groups; packed if none can. @throws TakeError,
 * HangError
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, takeByTopologyNUMADistributed (KEP-2902).
 */
export function takeDistributed(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  groupSize: number,
  sorting: Sorting,
  distribution: Distribution = { remainder: 'cpus', minCells: 0 },
): CpuSet {
  if (count % groupSize !== 0) return takePacked(topology, available, count, sorting, false);
  if (count < 1) return CpuSet.EMPTY;
  const acc = accumulate(topology, available, count, sorting);
  const { cells } = topology;
  const free = new Map(acc.sorted(cells).map((cell) => [cell, acc.freeIn(cells, cell).size]));
  const request = { ...distribution, topology, count, groupSize, free };
  const [fewest, most] = cellRange(request);
  for (let size = fewest; size <= most; size++) {
    const spread = bestSpread(request, size);
    if (spread) return takeSpread(acc, request, spread, sorting);
  }
  return takePacked(topology, available, count, sorting, false);
}

function cellRange({ topology, count, groupSize, free, minCells }: Request): [number, number] {
  const groups = Math.floor((topology.cpus.size - 1) / groupSize) + 1;
  const groupsPerCell = Math.floor((groups - 1) / topology.cells.groups.size) + 1;
  const groupsNeeded = Math.floor((count - 1) / groupSize) + 1;
  const fewest = Math.floor((groupsNeeded - 1) / groupsPerCell) + 1;
  const most = Math.min(groupsNeeded, free.size);
  return [minCells > most ? fewest : Math.max(fewest, minCells), most];
}

/** The first combination of `size` cells with the lowest balance score; undefined if no combination has enough CPUs. */
function bestSpread(request: Request, size: number): Spread | undefined {
  let best: Spread | undefined;
  for (const combination of combinations([...request.free.keys()], size)) {
    if (best?.balance === 0 && (!request.prefersSocket || best.isInOneSocket)) break;
    const spread = spreadOver(request, combination);
    if (spread && (!best || isBetter(spread, best, request))) best = spread;
  }
  return best;
}

function isBetter(spread: Spread, best: Spread, { prefersSocket }: Request): boolean {
  if (prefersSocket && spread.isInOneSocket !== best.isInOneSocket) return spread.isInOneSocket;
  return spread.balance < best.balance;
}

function isOneSocket({ cells, sockets }: CpuTopology, combination: readonly number[]): boolean {
  const cpus = unionOf(combination.map((cell) => cells.groups.get(cell) ?? CpuSet.EMPTY));
  return [...sockets.groups.values()].filter((socket) => socket.intersects(cpus)).length === 1;
}

function spreadOver(request: Request, combination: readonly number[]): Spread | undefined {
  const { count, groupSize, free, prefersSocket } = request;
  const frees = combination.map((cell) => free.get(cell) ?? 0);
  const groups = frees.reduce((sum, cpus) => sum + Math.floor(cpus / groupSize), 0);
  const equal = Math.floor(Math.floor(count / combination.length) / groupSize) * groupSize;
  const each = prefersSocket ? Math.min(equal, ...frees.map((cpus) => cpus - (cpus % groupSize))) : equal;
  if (groups * groupSize < count || frees.some((cpus) => cpus < each)) return undefined;
  const isInOneSocket = prefersSocket === true && isOneSocket(request.topology, combination);

  const after = new Map(free);
  for (const cell of combination) after.set(cell, (after.get(cell) ?? 0) - each);
  const remainder = count - each * combination.length;
  const even = { combination, each, isInOneSocket, rest: [] };
  if (remainder === 0) return { ...even, balance: standardDeviation([...after.values()]) };

  const candidates = combination.filter((cell) => (after.get(cell) ?? 0) >= groupSize);
  let best: Spread | undefined;
  for (let size = candidates.length; size >= 1; size--) {
    for (const rest of combinations(candidates, size)) {
      const balance = balanceWith(after, rest, remainder, request);
      if (balance !== undefined && (!best || balance < best.balance)) best = { ...even, balance, rest };
    }
  }
  return best;
}

/** After the remainder is distributed in groups, in turn, to the cells of `rest`; undefined without room there. */
function balanceWith(
  after: ReadonlyMap<number, number>,
  rest: readonly number[],
  remainder: number,
  { groupSize, remainder: unit }: Request,
): number | undefined {
  const left = new Map(after);
  const roomOf = (cpus: number) => (unit === 'groups' ? cpus - (cpus % groupSize) : cpus);
  const room = rest.reduce((sum, cell) => sum + roomOf(left.get(cell) ?? 0), 0);
  if (room < remainder) return undefined;
  let open = remainder;
  while (open > 0) {
    const before = open;
    for (const cell of rest) {
      const cpus = left.get(cell) ?? 0;
      if (open === 0 || cpus < groupSize) continue;
      left.set(cell, cpus - groupSize);
      open -= groupSize;
    }
    // No cell has room for another whole group.
    if (open === before) throw new HangError();
  }
  return standardDeviation([...left.values()]);
}

function takeSpread(
  acc: Accumulator,
  { topology, count, groupSize }: Request,
  { combination, each, rest }: Spread,
  sorting: Sorting,
): CpuSet {
  const { cells } = topology;
  const takeFrom = (cell: number, cpus: number) => {
    const chosen = takePacked(topology, acc.freeIn(cells, cell), cpus, sorting, false);
    acc.take(chosen.intersect(cells.groups.get(cell)!));
  };
  for (const cell of combination) takeFrom(cell, each);
  let remainder = count - each * combination.length;
  while (remainder > 0) {
    const before = remainder;
    for (const cell of rest) {
      if (remainder === 0 || acc.freeIn(cells, cell).size < groupSize) continue;
      takeFrom(cell, groupSize);
      remainder -= groupSize;
    }
    // Cores of different sizes: more was chosen than requested.
    if (remainder === before) throw new HangError();
  }
  if (acc.needed <= 0) return acc.result;
  throw new TakeError(`accounting error, not enough CPUs allocated, remaining: ${acc.needed}`);
}

function* combinations(items: readonly number[], size: number, start = 0): Generator<readonly number[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let i = start; i <= items.length - size; i++) {
    for (const tail of combinations(items, size - 1, i + 1)) yield [items[i]!, ...tail];
  }
}

/** Rounded to thousandths in both steps, as in the kubelet: equal scores must compare as equal. */
function standardDeviation(values: readonly number[]): number {
  const mean = thousandths(values.reduce((sum, value) => sum + value, 0) / values.length);
  const squares = values.reduce((sum, value) => sum + (value - mean) * (value - mean), 0);
  return thousandths(Math.sqrt(squares / values.length));
}

function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}
