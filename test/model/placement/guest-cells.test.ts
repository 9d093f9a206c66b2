import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import {
  arrangeGuestCells,
  type CellRoom,
  pinWholeCores,
  placeGuestCells,
} from '../../../model/placement/guest-cells.ts';
import { hostOf, shapes } from '../kubelet/arbitraries.ts';

/** Four NUMA nodes of four CPUs, cores of one thread. */
const ROOMS: readonly CellRoom[] = [0, 1, 2, 3].map((id) => ({
  id,
  free: CpuSet.range(id * 4, id * 4 + 3),
  cores: [0, 1, 2, 3].map((core) => CpuSet.of([id * 4 + core])),
}));

describe('model/placement: guest cells', () => {
  it('two equal guest cells on four nodes, physnets on 1 and 3: pins are in nodes 1 and 3', () => {
    const places = placeGuestCells([2, 2], ROOMS, [CpuSet.of([1]), CpuSet.of([3])]);
    assert.deepEqual(
      places?.map(({ cell }) => cell),
      [1, 3],
    );
    assert.deepEqual(
      places?.map(({ pins }) => `${pins}`),
      ['4-5', '12-13'],
    );
  });

  it('one guest cell cannot reach two distant networks', () => {
    assert.equal(placeGuestCells([2], ROOMS, [CpuSet.of([1]), CpuSet.of([3])]), undefined);
  });

  it('a network that is nowhere constrains nothing', () => {
    assert.equal(placeGuestCells([2], ROOMS, [CpuSet.of([7])])?.[0]?.cell, 0);
  });

  it('a core is never shared', () => {
    const room: CellRoom = {
      id: 0,
      free: CpuSet.parse('1-5'),
      cores: ['0-1', '2-3', '4-5'].map((core) => CpuSet.parse(core)),
    };
    assert.equal(`${pinWholeCores(room, 4)}`, '2-5');
    assert.equal(`${pinWholeCores(room, 3)}`, '2-5');
    assert.equal(pinWholeCores(room, 5), undefined);
  });

  it('10,000 random hosts match brute force: pins are in their cell, disjoint, complete and used once', function () {
    this.timeout(300_000);
    const cases = fc.record({
      shape: shapes(16),
      busy: fc.nat(0xffff),
      demands: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 3 }),
      networks: fc.array(fc.nat(15), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(cases, ({ shape, busy, demands, networks }) => {
        const host = hostOf(shape);
        const free = host.online.minus(CpuSet.fromWords(Uint32Array.of(busy)));
        const rooms = host.cells.map(({ id, cpus }) => ({
          id,
          free: free.intersect(cpus),
          cores: host.cores.filter((core) => core.isSubsetOf(cpus)),
        }));
        const cells = networks.map((bits) => CpuSet.fromWords(Uint32Array.of(bits)));
        const places = placeGuestCells(demands, rooms, cells);
        assert.equal(places !== undefined, bruteForce(demands, rooms, cells));
        let left = free;
        places?.forEach(({ cell, pins }, guest) => {
          assert.ok(pins.isSubsetOf(host.cells.find(({ id }) => id === cell)?.cpus ?? CpuSet.EMPTY));
          assert.ok(pins.isSubsetOf(left), 'free, and not yet consumed by another guest cell');
          assert.equal(pins.size, Math.ceil((demands[guest] ?? 0) / shape.threads) * shape.threads);
          left = left.minus(pins);
        });
      }),
      { numRuns: 10_000 },
    );
  });

  it('sixteen nodes and eight guest cells do not take factorial time', () => {
    let asked = 0;
    const places = arrangeGuestCells({
      guests: 8,
      rooms: 16,
      fits: (guest, room) => {
        asked++;
        return room >= guest;
      },
      networks: [new Set([14]), new Set([15])],
    });
    assert.ok(places?.includes(14) && places.includes(15));
    // For each room at most 2^8 guests x 2^2 networks states, with eight calls each.
    assert.ok(asked <= 16 * 2 ** 10 * 8, `${asked} questions`);
  });

  it('the cheapest arrangement is chosen', () => {
    const places = arrangeGuestCells({
      guests: 2,
      rooms: 4,
      fits: () => true,
      networks: [],
      cost: (room) => (room < 2 ? 1 : 0),
    });
    assert.deepEqual(places?.toSorted(), [2, 3]);
  });
});

/** Tries every ordered choice of different rooms. */
function bruteForce(demands: readonly number[], rooms: readonly CellRoom[], networks: readonly CpuSet[]): boolean {
  const known = networks.filter((cells) => rooms.some(({ id }) => cells.has(id)));
  const holds = (room: CellRoom, cpus: number) =>
    unionOf(room.cores.filter((core) => core.isSubsetOf(room.free))).size >= cpus;
  const walk = (guest: number, chosen: readonly number[]): boolean => {
    const demand = demands[guest];
    if (demand === undefined) {
      const cells = CpuSet.of(chosen.flatMap((room) => rooms[room]?.id ?? []));
      return known.every((network) => network.intersects(cells));
    }
    return rooms.some(
      (room, index) => !chosen.includes(index) && holds(room, demand) && walk(guest + 1, [...chosen, index]),
    );
  };
  return walk(0, []);
}
