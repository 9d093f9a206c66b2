import { CpuSet } from '../../model/cpu-set.ts';
import { arrangeGuestCells, pinWholeCores } from '../../model/placement/guest-cells.ts';
import { memoryFits, type NovaCell, type NovaGuest, roomOf } from './nova-fixture.ts';
import { type Adapter, collect, differs, type Verdict } from './outcome.ts';

interface VswitchCase {
  readonly name: string;
  readonly kind: 'fit' | 'check-chosen-cells';
  readonly hostCells: readonly NovaCell[];
  readonly request: {
    readonly guestCells: readonly NovaGuest[] | null;
    readonly chosenHostCells?: readonly number[];
    readonly physnets: readonly string[];
    readonly tunneled: boolean;
  };
  readonly expected: {
    readonly fits: boolean;
    readonly networkAcceptableCellSets?: readonly (readonly number[])[];
  };
}

/**
 * nova-vswitch-cases.json: network affinity of guest cells to host cells. Compared are whether it fits, and that the
 * cells chosen are an acceptable set; where several are, Nova may take another.
 */
export const run: Adapter = (content) => collect(content as VswitchCase[], ({ name }) => name, check);

function check({ hostCells, request, expected }: VswitchCase): Verdict {
  const rooms = hostCells.map(roomOf);
  const offered = request.chosenHostCells
    ? hostCells.map(({ id }) => request.chosenHostCells?.includes(id) === true)
    : hostCells.map(() => true);
  const guests = request.guestCells ?? (request.chosenHostCells ?? []).map(() => undefined);
  const networks = [
    ...request.physnets.map((name) => cellsWith(hostCells, ({ physnets }) => physnets?.includes(name) === true)),
    ...(request.tunneled ? [cellsWith(hostCells, ({ tunneled }) => tunneled === true)] : []),
  ].filter((where) => where.size > 0);
  const places = arrangeGuestCells({
    guests: guests.length,
    rooms: rooms.length,
    fits: (guest, room) => offered[room] === true && fitsIn(guests[guest], hostCells[room]!),
    networks,
  });
  const fits = differs(places !== undefined, expected.fits);
  if (fits || !places || !expected.networkAcceptableCellSets) return fits;
  const chosen = places.map((room) => rooms[room]!.id).sort((a, b) => a - b);
  const acceptable = expected.networkAcceptableCellSets.map((cells) => `${[...cells].sort((a, b) => a - b)}`);
  return acceptable.includes(`${chosen}`)
    ? undefined
    : `chose cells ${chosen}, acceptable are ${acceptable.join(' or ')}`;
}

function fitsIn(guest: NovaGuest | undefined, cell: NovaCell): boolean {
  if (!guest) return true;
  const vcpus = guest.vcpus?.length ?? 0;
  if (!memoryFits(guest, cell, undefined)) return false;
  if (guest.cpuPolicy !== 'dedicated') return vcpus <= CpuSet.of([...(cell.cpus ?? [])]).size;
  return pinWholeCores(roomOf(cell), vcpus) !== undefined;
}

function cellsWith(cells: readonly NovaCell[], has: (cell: NovaCell) => boolean): Set<number> {
  return new Set(cells.flatMap((cell, index) => (has(cell) ? [index] : [])));
}
