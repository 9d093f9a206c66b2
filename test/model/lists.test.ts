import assert from 'node:assert/strict';
import { byName } from '../../model/lists.ts';

describe('the order of names', () => {
  it('puts worker-2 before worker-10, as people do', () => {
    const sorted = ['a', 'worker', 'worker-1.rack-2', 'worker-1.rack-12', 'worker-2', 'worker-10'];
    assert.deepEqual([...sorted].reverse().sort(byName((name) => name)), sorted);
  });
});
