import assert from 'node:assert/strict';
import fc from 'fast-check';
import { fitsInEveryOrder } from '../../../model/placement/place.ts';

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
        const expected = [...ordersOf(items)].every(
          (order) =>
            order.reduce<number | undefined>((left, one) => (left === undefined ? left : admit(one, left)), room) !==
            undefined,
        );
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
