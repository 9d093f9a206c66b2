import assert from 'node:assert/strict';
import { BoundedMap } from '../../model/bounded-map.ts';

describe('a bounded map', () => {
  it('drops its oldest entry for a new one, and none for a new value of an entry', () => {
    const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3);
    assert.deepEqual(
      [...map],
      [
        ['a', 3],
        ['b', 2],
      ],
    );
    assert.deepEqual([...map.set('c', 4).keys()], ['b', 'c']);
  });

  it('creates a missing value once', () => {
    const map = new BoundedMap<string, number>(2);
    let created = 0;
    const create = () => ++created;
    assert.deepEqual([map.getOrCreate('a', create), map.getOrCreate('a', create), created], [1, 1, 1]);
  });
});
