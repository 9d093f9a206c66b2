import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { createHost, wholeCoresTouching } from '../../model/host.ts';
import { createKubelet } from '../../model/kubelet/kubelet.ts';
import { arrangeGuestCells, pinWholeCores } from '../../model/placement/guest-cells.ts';
import { memoryFits, type NovaCell, type NovaGuest, roomOf, threadsOf } from './nova-fixture.ts';
import { type Adapter, collect, differs, Skip, type Verdict } from './outcome.ts';

export interface PinningCase {
  readonly id: string;
  readonly name: string;
  readonly kind: 'fit' | 'account';
  readonly hostCells: readonly NovaCell[];
  readonly request: {
    readonly guestCells: readonly NovaGuest[];
    readonly emulatorThreads?: string | null;
    /** CPUs for an isolated emulator thread; 1 if not said. */
    readonly reservedCpus?: number;
    readonly limits?: { readonly ramAllocationRatio: number };
    readonly op?: 'consume' | 'release';
  };
  readonly expected: {
    readonly fits?: boolean;
    readonly cells?: readonly { readonly hostCell: number; readonly pins: Readonly<Record<string, number>> }[];
    readonly pinned?: Readonly<Record<string, readonly number[]>>;
  };
}

/**
 * Where whole-core placement and Nova's CPU pinning are meant to differ:
 *
 * 1. Nova without a thread policy, with `prefer` or with `require` may share a core between guests; whole cores never.
 *    So it may fit where whole cores do not. What whole cores fit, it must fit.
 * 2. Nova's `require` refuses hosts without SMT; whole cores of one thread are whole cores.
 * 3. Nova's `isolate` gives each vCPU a core of its own and leaves its siblings idle; whole cores use all threads. So
 *    whole cores fit wherever `isolate` does, and elsewhere too.
 * 4. Of several equal cores either may take any, and cells are ordered by different wishes: the number of CPUs is
 *    compared, and that they lie in one cell, are free and are whole cores.
 * 5. Counts that are no whole cores are padded before they are placed; shared vCPUs are not placed at all.
 */
export const run: Adapter = (content) =>
  collect(
    content as PinningCase[],
    (item) => `${item.id} ${item.name}`,
    (item) => (item.kind === 'account' ? account(item) : fitsAsExpected(item)),
  );

/** Compares one fit. Used for the generated cases too. */
export function fitsAsExpected({ hostCells, request, expected }: PinningCase): Verdict {
  const { guestCells: guests, emulatorThreads, limits } = request;
  const left = leftOut(guests);
  if (left) return left;
  const threads = threadsOf(hostCells);
  if (guests.some((guest) => vcpusOf(guest) % threads !== 0 || vcpusOf(guest) % 2 !== 0)) {
    return new Skip('odd counts: a guest is padded to whole cores before it is placed');
  }
  // An isolated emulator thread takes one more CPU near the first guest cell; in whole cores, that is one core more.
  const emulator = emulatorThreads === 'isolate' ? (request.reservedCpus ?? 1) : 0;
  const demands = guests.map((guest, index) => vcpusOf(guest) + (index === 0 ? emulator : 0));
  const rooms = hostCells.map(roomOf);
  const pins = demands.map((cpus) => rooms.map((room) => pinWholeCores(room, cpus)));
  const places = arrangeGuestCells({
    guests: guests.length,
    rooms: rooms.length,
    fits: (guest, room) =>
      pins[guest]?.[room] !== undefined && memoryFits(guests[guest]!, hostCells[room]!, limits?.ramAllocationRatio),
    networks: [],
  });
  const chosen = places?.map((room, guest) => ({ room: rooms[room]!, pins: pins[guest]![room]! }));
  for (const [guest, place] of (chosen ?? []).entries()) {
    const wrong = unsound(place.pins, place.room, demands[guest]!);
    if (wrong) return wrong;
  }
  return compare(guests, chosen !== undefined, expected.fits ?? false, threads);
}

function compare(guests: readonly NovaGuest[], fits: boolean, novaFits: boolean, threads: number): Verdict {
  if (fits === novaFits) return undefined;
  const policies = new Set(guests.map(({ threadPolicy }) => threadPolicy ?? 'none'));
  if (policies.has('isolate')) return fits ? undefined : 'isolate fits where whole cores do not';
  if (!fits) return undefined;
  if (policies.has('require') && threads === 1) return undefined;
  return 'whole cores fit where Nova refuses';
}

/** Free, whole, disjoint by construction of the rooms, and enough. */
function unsound(pins: CpuSet, { free, cores }: { free: CpuSet; cores: readonly CpuSet[] }, wanted: number): Verdict {
  if (!pins.isSubsetOf(free)) return `pins ${pins} are not all free`;
  const whole = unionOf(cores.filter((core) => core.intersects(pins)));
  if (!whole.equals(pins)) return `pins ${pins} are not whole cores`;
  return pins.size < wanted ? `${pins.size} pins for ${wanted} CPUs` : undefined;
}

function leftOut(guests: readonly NovaGuest[]): Skip | undefined {
  const policies = new Set(guests.map(({ cpuPolicy }) => cpuPolicy));
  if (policies.has('mixed')) return new Skip('mixed guests: a launcher has all of its CPUs exclusive, or none');
  const onlyShared = guests.some((guest) => vcpusOf(guest) === 0);
  if (policies.has('shared') || onlyShared) return new Skip('shared guests run on the shared pool and are not placed');
  return undefined;
}

function vcpusOf(guest: NovaGuest): number {
  return guest.dedicatedVcpus?.length ?? 0;
}

/**
 * Consuming and releasing pins is what the kubelet's own state does: a guest is a pod that owns CPUs, and what is
 * pinned is what has left the shared pool.
 */
function account({ hostCells, request, expected }: PinningCase): Verdict {
  const host = createHost({
    cells: hostCells.map((cell) => ({ id: cell.id, cpus: `${unionOf(roomOf(cell).cores)}` })),
    cores: hostCells.flatMap((cell) => roomOf(cell).cores.map((core) => `${core}`)),
  });
  const kubelet = createKubelet({
    version: 'v1.36.0',
    host,
    cpuManager: { policy: 'static' },
    reserved: CpuSet.EMPTY,
  });
  if ('unpredictable' in kubelet) return kubelet.unpredictable;
  const guest = unionOf(request.guestCells.map((cell) => ownedBy(cell, hostCells, host)));
  const pinned = CpuSet.of(hostCells.flatMap((cell) => [...cell.pinned]));
  const others = pinned.minus(guest);
  const state = kubelet.initialState(
    new Map(),
    new Map([
      ['others', new Map([['compute', others]])],
      ['guest', new Map([['compute', guest]])],
    ]),
  );
  const after = request.op === 'consume' ? state : kubelet.remove(state, 'guest');
  const now = host.online.minus(after.defaultSet);
  const byCell = Object.fromEntries(host.cells.map(({ id, cpus }) => [id, now.intersect(cpus).toArray()]));
  return differs(byCell, expected.pinned);
}

function ownedBy(guest: NovaGuest, cells: readonly NovaCell[], host: ReturnType<typeof createHost>): CpuSet {
  const pins = CpuSet.of([...Object.values(guest.pins ?? {})]);
  const emulator = CpuSet.of([...(guest.emulatorCpus ?? [])]);
  const cell = CpuSet.of([...(cells.find(({ id }) => id === guest.hostCell)?.dedicatedCpus ?? [])]);
  // `isolate` owns the siblings as well, as far as they are dedicated.
  const owned = guest.threadPolicy === 'isolate' ? wholeCoresTouching(host, pins).intersect(cell) : pins;
  return owned.union(emulator);
}
