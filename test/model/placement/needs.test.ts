import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { fitsInEveryOrder } from '../../../model/placement/every-order.ts';
import { keepsWholeCores, needsKey, withAssignments, withoutPods } from '../../../model/placement/needs.ts';
import { needs, node, physnet, TUNNEL } from './fixture.ts';

const owned = (podUID: string, cpus: string) => ({ podUID, container: 'c', cpus });
const old = { kubeletVersion: 'v1.20.0' };
describe('a node that is prepared from its report', () => {
  it('has what is reported', () => {
    const told = node({
      pmdCPUs: '4-5',
      pinsVMs: false,
      cpuManager: { policy: 'none', options: { 'full-pcpus-only': 'false' } },
      assignments: [owned('a', '2-3'), owned('b', '8-9'), owned('b', '12')],
    });
    assert.deepEqual(
      [told.alignment, told.pinsVMs, `${told.polled}`, told.sharedOnly, told.wholeCoresOnly],
      ['best-effort', false, '4-5', true, false],
    );
    assert.deepEqual([`${told.owned}`, [...told.owners]], ['2-3,8-9,12', ['a', 'b']]);
    assert.deepEqual([...told.networks.physnets].map(String), ['east,0', 'west,1', 'bond,0-1', 'vague,']);
    assert.equal(`${told.networks.tunnel}`, '1');
  });

  it('is the same with other pods, and without some', () => {
    for (const changes of [{}, old]) {
      const before = node({ ...changes, assignments: [owned('a', '2-3'), owned('b', '8-9')] });
      const after = withAssignments(before, [owned('c', '4-7')]);
      assert.deepEqual([`${after.owned}`, [...after.owners], after.host === before.host], ['4-7', ['c'], true]);
      assert.equal(after.state === undefined, changes === old);
      if (after.state) assert.equal(`${after.state.defaultSet}`, '0-3,8-15');
      const without = withoutPods(before, new Set(['b', 'unknown']));
      const left = `${without.owned} of ${[...without.owners]}`;
      assert.equal(left, changes === old ? '2-3,8-9 of a,b' : '2-3 of a');
      if (without.state) assert.equal(`${without.state.defaultSet}`, '0-1,4-15');
    }
  });
});
describe('needs of a pod', () => {
  it('have a key that differs in whatever may change the verdict, and not in the uid', () => {
    const mask = { mask: parseMask('1:2'), fixMismatch: false };
    const networks = [
      ...(['required', 'preferred'] as const).flatMap((is) => [physnet('east', is), physnet('west', is)]),
      TUNNEL,
    ];
    const promises = [{ wholeCores: true }, { spansCells: true }, { mayShare: true }, { guestThreads: 2 }, { mask }];
    const different = [
      needs('a', 2),
      needs('a', 4),
      needs('a', 2, [], {}, 2),
      ...networks.map((network) => needs('a', 2, [network])),
      ...[...promises, { mask: { ...mask, fixMismatch: true } }].map((more) => needs('a', 2, [], more)),
    ];
    assert.equal(new Set(different.map(needsKey)).size, different.length);
    const nothing = { wholeCores: false, spansCells: false, mayShare: false };
    assert.equal(needsKey(needs('a', 2)), needsKey(needs('b', 2, [], nothing)));
    const named = { ...physnet('east'), name: 'another interface' };
    assert.equal(needsKey(needs('a', 2, [physnet('east')])), needsKey(needs('b', 2, [named])));
    assert.equal(needsKey(needs('a', 2, [], { key: 'computed' })), 'computed');
  });

  it('have whole cores on larger cores only if the pod is padded to them', () => {
    const four = node({ cores: ['0-3', '4-7', '8-11', '12-15'], reserved: '0-3' });
    const one = node({ cores: Array.from({ length: 16 }, (_, id) => `${id}`) });
    const keeps = (cpus: number, host = four, init = 0) =>
      keepsWholeCores(needs('a', cpus, [], { wholeCores: true }, init), host);
    assert.deepEqual([keeps(4), keeps(6), keeps(8), keeps(8, four, 6)], [true, false, true, true]);
    assert.deepEqual([keeps(6, node()), keeps(3, node()), keeps(3, one)], [true, true, true]);
    const mixed = needs('a', 8, [], { wholeCores: true });
    const [smaller] = needs('a', 6).request.containers;
    assert.ok(smaller);
    const request = { ...mixed.request, containers: [...mixed.request.containers, smaller] };
    assert.equal(keepsWholeCores({ ...mixed, request }, four), false, 'each container needs whole cores');
    assert.equal(keepsWholeCores(needs('a', 4), four), false);
  });
});

interface Item {
  readonly size: number;
  /** The room that is left after it must not be this. */
  readonly hates: number;
}
/** Every order of the items, one by one. */
function* ordersOf<T>(items: readonly T[]): Generator<readonly T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries())
    for (const rest of ordersOf(items.toSpliced(index, 1))) yield [item, ...rest];
}
describe('every order of admission', () => {
  const admit = ({ size, hates }: Item, room: number) =>
    size > room || room - size === hates ? undefined : room - size;
  const search = (items: readonly Item[], room: number, more: object = {}) =>
    fitsInEveryOrder({ items, keyOf: JSON.stringify, start: room, admit, textOf: String, ...more });
  const item = fc.record({ size: fc.integer({ min: 1, max: 3 }), hates: fc.integer({ min: -2, max: 6 }) });

  let states = 0;
  /** No two states are equal. */
  const distinct = () => `${states++}`;

  it('is tried, as by a loop over all orders, whether or not states are compared', () => {
    let fitting = 0;
    fc.assert(
      fc.property(fc.array(item, { maxLength: 5 }), fc.integer({ min: 4, max: 12 }), (items, room) => {
        const after = (left: number | undefined, one: Item) => (left === undefined ? left : admit(one, left));
        const fits = (order: readonly Item[]) => order.reduce<number | undefined>(after, room) !== undefined;
        const expected = [...ordersOf(items)].every(fits);
        if (expected) fitting++;
        assert.equal(search(items, room), expected);
        assert.equal(search(items, room, { textOf: distinct }), expected);
      }),
      { numRuns: 500 },
    );
    assert.ok(fitting > 50 && fitting < 450, `${fitting} of 500 fit`);
  });

  it('is not promised after more than 400 tries', () => {
    const items = (count: number) => Array.from({ length: count }, () => ({ size: 1, hates: -1 }));
    assert.equal(search(items(400), 1000), true);
    assert.equal(search(items(401), 1000), false);
  });
});
