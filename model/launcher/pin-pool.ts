/** A host in virt-handler's description for the launcher: cells in order, and in each the CPUs in order. */
export type LauncherCells = readonly (readonly LauncherHostCpu[])[];

interface LauncherHostCpu {
  readonly cpu: number;
  /** All threads of its core including itself, in the host's order. Empty: it is a core with one thread. */
  readonly siblings: readonly number[];
}

/** The remaining CPUs of one NUMA node. */
interface CellPool {
  /** Free threads by host core, for cores with enough of them for a guest core. */
  readonly full: number[][];
  /** Free threads of cores with too few of them for a guest core. */
  readonly fragments: number[];
}

/**
 * The container's CPUs in the order in which the launcher takes them: whole host cores first, then fragments of cores
 * within one cell, then fragments across cells. Each CPU is taken once.
 */
export class PinPool {
  readonly #cells: readonly CellPool[];
  readonly #threads: number;

  /** @param threads threads of a guest core, at least 1 */
  constructor(cells: LauncherCells, cpuset: Iterable<number>, threads: number) {
    const given = new Set(cpuset);
    this.#threads = threads;
    this.#cells = cells.map((cell) => cellPool(cell, given, threads));
  }

  /**
   * The threads of `cores` guest cores, one core after the other; fewer if there are not enough CPUs.
   * @param acrossCells whether a guest core may have threads in several cells
   */
  takeCores(cores: number, acrossCells: boolean): readonly number[] {
    const wanted = cores * this.#threads;
    const taken: number[] = [];
    for (const take of [takeFull, takeFragments]) {
      for (const cell of this.#cells) {
        while (taken.length < wanted) {
          const chunk = take(cell, this.#threads, this.#threads);
          if (chunk === undefined) break;
          taken.push(...chunk);
        }
      }
    }
    if (acrossCells) for (const { fragments } of this.#cells) taken.push(...fragments.splice(0, wanted - taken.length));
    return taken;
  }

  /** One thread of the first cell that has any, fragments before whole cores. */
  takeThread(): number | undefined {
    const cell = this.#cells.find(({ full, fragments }) => full.length > 0 || fragments.length > 0);
    return cell && (takeFragments(cell, 1) ?? takeFull(cell, 1, this.#threads))?.[0];
  }
}

/**
 * The next threads of the first whole core. Its remaining threads become a fragment when they are too few for a guest
 * core.
 */
function takeFull(cell: CellPool, count: number, threads: number): number[] | undefined {
  const core = cell.full[0];
  if (core === undefined) return undefined;
  const taken = core.splice(0, count);
  if (core.length < threads) {
    cell.full.shift();
    cell.fragments.push(...core);
  }
  return taken;
}

function takeFragments(cell: CellPool, count: number): number[] | undefined {
  return cell.fragments.length < count ? undefined : cell.fragments.splice(0, count);
}

function cellPool(cell: readonly LauncherHostCpu[], given: ReadonlySet<number>, threads: number): CellPool {
  const seen = new Set<number>();
  const pool: CellPool = { full: [], fragments: [] };
  for (const { cpu, siblings } of cell) {
    if (seen.has(cpu)) continue;
    const core = siblings.length === 0 ? [cpu] : siblings;
    for (const thread of core) seen.add(thread);
    const free = core.filter((thread) => given.has(thread));
    if (free.length >= threads) pool.full.push(free);
    else pool.fragments.push(...free);
  }
  return pool;
}
