import assert from 'node:assert/strict';
import { parseRanges } from '../../model/cpu-ranges.ts';

const idsOf = (list: string, limit = 1024) => {
  const words = parseRanges(list, list, limit);
  return Array.from({ length: words.length * 32 }, (_, id) => id).filter((id) => (words[id >>> 5]! >>> (id & 31)) & 1);
};

describe('ranges of CPUs', () => {
  for (const [list, ids] of [
    ['5', [5]],
    ['0-3,8', [0, 1, 2, 3, 8]],
    ['31-32', [31, 32]],
    ['4,1-2,2', [1, 2, 4]],
  ] as const) {
    it(`${list}: CPUs ${ids.join()}`, () => assert.deepEqual(idsOf(list), ids));
  }

  it('fill the words between their ends', () => assert.equal(idsOf('1-126').length, 126));

  for (const [list, message] of [
    ['3-1', /the range "3-1" runs backwards/],
    ['0-1024', /CPU ids end at 1023/],
    ['99999999999999999999', /CPU ids end at 1023/],
    ['1,', /separated by commas/],
    ['1-2-3', /separated by commas/],
    ['a', /separated by commas/],
  ] as const) {
    it(`${list} is refused`, () => assert.throws(() => idsOf(list), message));
  }
});
