import { CpuSet, unionOf } from '../cpu-set.ts';

/** The remaining CPUs of one NUMA node of a host. */
export interface CellRoom {
  readonly id: number;
  readonly free: CpuSet;
  /** All cores of the NUMA node, each with all its threads, free or not. */
  readonly cores: readonly CpuSet[];
}

/** The place of one guest cell. */
export interface GuestCellPlace {
  readonly cell: number;
  readonly pins: CpuSet;
}

/** The input for an arrangement of guest cells. Guests and rooms are identified by index. */
export interface Arrangement {
  readonly guests: number;
  readonly rooms: number;
  readonly fits: (guest: number, room: number) => boolean;
  /** For each network, the indexes of its rooms. A network without a room is left out. */
  readonly networks: readonly ReadonlySet<number>[];
  /** Cost of using a room; lower is better. Default 0. */
  readonly cost?: (room: number) => number;
}

interface Partial {
  readonly cost: number;
  /** The room of each guest that is placed so far. */
  readonly rooms: ReadonlyMap<number, number>;
}

/**
 * Assigns a separate room to each guest cell so that every network is in one of the chosen rooms, at the lowest cost.
 *
 * Room by room, it keeps the cheapest way to each pair of (placed guests, reached networks). Time grows linearly with
 * the rooms and with 2^(guests + networks), instead of rooms! / (rooms - guests)! for every arrangement.
 *
 * @returns the room of each guest, or undefined if there is no arrangement
 */
export function arrangeGuestCells({
  guests,
  rooms,
  fits,
  networks,
  cost = () => 0,
}: Arrangement): number[] | undefined {
  const allGuests = 2 ** guests - 1;
  const allNetworks = 2 ** networks.length - 1;
  let states = new Map<number, Partial>([[0, { cost: 0, rooms: new Map() }]]);
  for (let room = 0; room < rooms; room++) {
    const here = networks.reduce((mask, where, network) => (where.has(room) ? mask | (1 << network) : mask), 0);
    const next = new Map(states);
    for (const [key, partial] of states) {
      const placed = Math.floor(key / (allNetworks + 1));
      const reached = (key % (allNetworks + 1)) | here;
      for (let guest = 0; guest < guests; guest++) {
        if ((placed & (1 << guest)) !== 0 || !fits(guest, room)) continue;
        const target = (placed | (1 << guest)) * (allNetworks + 1) + reached;
        const total = partial.cost + cost(room);
        const known = next.get(target);
        if (known && known.cost <= total) continue;
        next.set(target, { cost: total, rooms: new Map(partial.rooms).set(guest, room) });
      }
    }
    states = next;
  }
  const found = states.get(allGuests * (allNetworks + 1) + allNetworks);
  return found && Array.from({ length: guests }, (_, guest) => found.rooms.get(guest) ?? -1);
}

/**
 * The lowest free whole cores with enough CPUs. The guest keeps surplus threads: it never shares a core.
 * @returns undefined if there are too few
 */
export function pinWholeCores({ free, cores }: CellRoom, cpus: number): CpuSet | undefined {
  const taken: CpuSet[] = [];
  let open = cpus;
  for (const core of cores) {
    if (open <= 0) break;
    if (!core.isSubsetOf(free)) continue;
    taken.push(core);
    open -= core.size;
  }
  return open > 0 ? undefined : unionOf(taken);
}

/**
 * Places guest cells on whole cores of a host's NUMA nodes, each on a separate NUMA node, so that every network is
 * reached. The order of `rooms` breaks ties.
 * @param demands number of CPUs of each guest cell
 * @returns undefined if it is impossible
 */
export function placeGuestCells(
  demands: readonly number[],
  rooms: readonly CellRoom[],
  networks: readonly CpuSet[],
): GuestCellPlace[] | undefined {
  const pins = demands.map((cpus) => rooms.map((room) => pinWholeCores(room, cpus)));
  const known = networks.filter((cells) => rooms.some(({ id }) => cells.has(id)));
  const arranged = arrangeGuestCells({
    guests: demands.length,
    rooms: rooms.length,
    fits: (guest, room) => pins[guest]?.[room] !== undefined,
    networks: known.map((cells) => new Set(rooms.flatMap(({ id }, index) => (cells.has(id) ? [index] : [])))),
  });
  return arranged?.map((room, guest) => ({
    cell: rooms[room]?.id ?? -1,
    pins: pins[guest]?.[room] ?? CpuSet.EMPTY,
  }));
}
