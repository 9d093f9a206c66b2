import { PlumblineError } from '../errors.ts';
import type { VmiShape } from '../shapes.ts';
import { type GuestTopology, guestTopology, pinnedCpus } from './cpus.ts';

/**
 * The host CPUs that virt-launcher pins threads to: whole host cores first, then fragments of cores within one NUMA
 * node, then (unless strict) across NUMA nodes, in the host's order. It repeats this at each sync, so the cpuset
 * determines the layout.
 * Source: KubeVirt 1.9, pkg/virt-launcher/virtwrap/converter/vcpu. 1.7 and 1.8 pin IO threads of a pool to CPUs
 * numbered from the count of vCPUs on.
 */

interface LauncherPinRequest {
  readonly cpuset: Iterable<number>;
  readonly cells: LauncherCells;
  readonly guest: GuestTopology;
  /** guestMappingPassthrough: no guest core may have threads in two NUMA nodes of the host. */
  readonly strict: boolean;
  /** Number of IO threads of a supplemental pool; those of other policies share CPUs with other threads. */
  readonly ioThreads?: number;
  /** 0, 1, or 2 with KubeVirt's even-parity annotation. */
  readonly emulator?: number;
}

/** The guest does not start. */
export class LauncherPinError extends PlumblineError {
  constructor(message: string) {
    super('launcher-pins', message);
  }
}

/** @throws ParseError if the VMI's CPU amount is not a quantity */
export function launcherPinRequest(vmi: VmiShape, cpuset: Iterable<number>, cells: LauncherCells): LauncherPinRequest {
  const { ioThreads, emulator } = pinnedCpus(vmi);
  const strict = Boolean(vmi.spec.domain.cpu?.numa?.guestMappingPassthrough);
  return { cpuset, cells, guest: guestTopology(vmi), strict, ioThreads, emulator };
}

/** @throws LauncherPinError if the cpuset has too few CPUs, or too few within single cells for a strict guest */
export function launcherPins({ guest, strict, ioThreads = 0, emulator = 0, ...host }: LauncherPinRequest) {
  const cores = guest.sockets * guest.cores;
  if (!(guest.threads >= 1)) throw new LauncherPinError(`a guest core cannot have ${guest.threads} threads`);
  const pool = new PinPool(host.cells, host.cpuset, guest.threads);
  const vcpus = pool.takeCores(cores, !strict);
  const missing = cores - vcpus.length / guest.threads;
  if (missing > 0) {
    const why = strict ? ' without a guest core that spans NUMA cells' : '';
    throw new LauncherPinError(
      `no CPUs left for ${Math.ceil(missing)} of ${cores} guest cores of ${guest.threads} threads${why}`,
    );
  }
  const take = (count: number, what: string) => {
    const chosen = pool.takeThreads(count);
    if (chosen.length === count) return chosen;
    throw new LauncherPinError(`no CPUs left for ${count - chosen.length} of ${count} ${what}`);
  };
  const pins = { vcpus, ioThreads: take(ioThreads, 'IO threads'), emulator: take(emulator, 'emulator CPUs') };
  return { ...pins, spare: pool.takeThreads(Number.POSITIVE_INFINITY) };
}

/** In virt-handler's description: cells in order, and in each the CPUs in order. */
export type LauncherCells = readonly (readonly LauncherHostCpu[])[];

interface LauncherHostCpu {
  readonly cpu: number;
  /** All threads of its core including itself, in the host's order. Empty: it is a core with one thread. */
  readonly siblings: readonly number[];
}

interface CellPool {
  /** Free threads by host core, for cores with enough of them for a guest core. */
  readonly full: number[][];
  /** Free threads of cores with too few of them for a guest core. */
  readonly fragments: number[];
}

/** Whole host cores first, then fragments of cores within one cell, then across cells. Each CPU is chosen once. */
export class PinPool {
  readonly #cells: readonly CellPool[];
  readonly #threads: number;

  constructor(cells: LauncherCells, cpuset: Iterable<number>, threads: number) {
    const available = new Set(cpuset);
    this.#threads = threads;
    this.#cells = cells.map((cell) => cellPool(cell, available, threads));
  }

  /** One core after the other; fewer if there are not enough CPUs. @param acrossCells within one guest core */
  takeCores(cores: number, acrossCells: boolean): readonly number[] {
    const count = cores * this.#threads;
    const chosen: number[] = [];
    for (const take of [takeFull, takeFragments]) {
      for (const cell of this.#cells) {
        while (chosen.length < count) {
          const chunk = take(cell, this.#threads, this.#threads);
          if (chunk === undefined) break;
          chosen.push(...chunk);
        }
      }
    }
    if (acrossCells)
      for (const { fragments } of this.#cells) chosen.push(...fragments.splice(0, count - chosen.length));
    return chosen;
  }

  /** From the first cell that has any, fragments before whole cores; fewer if there are not enough. */
  takeThreads(count: number): readonly number[] {
    const chosen: number[] = [];
    for (const cell of this.#cells) {
      while (chosen.length < count) {
        const thread = takeFragments(cell, 1) ?? takeFull(cell, 1, this.#threads);
        if (thread === undefined) break;
        chosen.push(...thread);
      }
    }
    return chosen;
  }
}

/** Its remaining threads become a fragment when they are too few for a guest core. */
function takeFull(cell: CellPool, count: number, threads: number): number[] | undefined {
  const core = cell.full[0];
  if (core === undefined) return undefined;
  const chosen = core.splice(0, count);
  if (core.length < threads) {
    cell.full.shift();
    cell.fragments.push(...core);
  }
  return chosen;
}

function takeFragments(cell: CellPool, count: number): number[] | undefined {
  return cell.fragments.length < count ? undefined : cell.fragments.splice(0, count);
}

function cellPool(cell: readonly LauncherHostCpu[], available: ReadonlySet<number>, threads: number): CellPool {
  const visitedCpus = new Set<number>();
  const pool: CellPool = { full: [], fragments: [] };
  for (const { cpu, siblings } of cell) {
    if (visitedCpus.has(cpu)) continue;
    const core = siblings.length === 0 ? [cpu] : siblings;
    for (const thread of core) visitedCpus.add(thread);
    const free = core.filter((thread) => available.has(thread));
    if (free.length >= threads) pool.full.push(free);
    else pool.fragments.push(...free);
  }
  return pool;
}
