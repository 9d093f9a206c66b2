import assert from 'node:assert/strict';
import { byName, byText, groupBy } from '../../model/lists.ts';

const itself = (text: string) => text;

describe('lists', () => {
  it('are grouped in the order of their items, by any key', () => {
    const groups = groupBy(['b1', '__proto__', 'a1', 'b2'], (name) => name.replace(/\d/, ''));
    assert.deepEqual(
      [...groups],
      [
        ['b', ['b1', 'b2']],
        ['__proto__', ['__proto__']],
        ['a', ['a1']],
      ],
    );
  });

  it('by name: worker-2 is before worker-10, as people sort', () => {
    const sorted = ['a', 'worker', 'worker-1.rack-2', 'worker-1.rack-12', 'worker-2', 'worker-10'];
    assert.deepEqual(sorted.toReversed().sort(byName(itself)), sorted);
  });

  it('by text: by code units, the same on every machine', () => {
    assert.deepEqual(['a', 'Z', 'worker-2', 'worker-10', 'a'].sort(byText(itself)), [
      'Z',
      'a',
      'a',
      'worker-10',
      'worker-2',
    ]);
  });
});
