import assert from 'node:assert/strict';
import { type EveryOrder, fitsInEveryOrder } from '../../../model/placement/every-order.ts';

/** Items with a size on a strip of free places; the text of a state is the number of free places. */
const strip = (free: number, items: readonly number[], more: Partial<EveryOrder<number, number>> = {}) => {
  let tries = 0;
  const fits = fitsInEveryOrder<number, number>({
    items,
    keyOf: String,
    start: free,
    admit: (size, left) => {
      tries++;
      return size > left ? undefined : left - size;
    },
    textOf: String,
    ...more,
  });
  return { fits, tries };
};

describe('model/placement: every order of pods', () => {
  it('fits if all of them fit in any order, without any as well', () => {
    assert.equal(strip(6, [1, 2, 3]).fits, true);
    assert.equal(strip(0, []).fits, true);
  });

  it('does not fit if one order leaves an item without a place', () => {
    // A 3 needs an even start: it fits first, and after a 2, but not after a 1.
    const admit = (size: number, left: number) => (size === 3 && left % 2 === 1 ? undefined : left - size);
    assert.equal(strip(8, [2, 3], { admit }).fits, true);
    assert.equal(strip(8, [1, 3], { admit }).fits, false);
    assert.equal(strip(8, [3, 1], { admit }).fits, false);
  });

  it('tries equal items once, and equal situations once', () => {
    assert.equal(strip(9, [3, 3, 3]).tries, 3);
    // Three items have eight sets of remaining items, and each set is left by as many ways as it has items.
    assert.equal(strip(6, [1, 2, 3]).tries, 12);
    assert.equal(strip(6, [1, 2, 3], { textOf: () => undefined }).tries, 15);
  });

  it('is not promised after 400 tries', () => {
    assert.deepEqual(strip(400, Array(400).fill(1)), { fits: true, tries: 400 });
    assert.deepEqual(strip(401, Array(401).fill(1)), { fits: false, tries: 400 });
  });
});
