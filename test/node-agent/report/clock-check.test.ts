import assert from 'node:assert/strict';
import { ClockCheck } from '../../../node-agent/report/clock-check.ts';

describe('a node’s clock', () => {
  /** Seconds that the API server's clock is ahead, one after the other, and the seconds that are reported. */
  const SEQUENCES: readonly (readonly [string, readonly number[], readonly (string | undefined)[]])[] = [
    ['a slow answer is no difference', [0, 9, -9], [undefined, undefined, undefined]],
    ['hours behind', [7200], ['7200 s behind']],
    ['ahead', [-60], ['60 s ahead of']],
    ['a small change is not written', [7200, 7201, 7195], ['7200 s behind', '7200 s behind', '7200 s behind']],
    ['a clock that drifts', [10, 15, 20], ['10 s behind', '10 s behind', '20 s behind']],
    ['a clock that was set', [7200, 0], ['7200 s behind', undefined]],
  ];
  for (const [title, offsets, expected] of SEQUENCES) {
    it(title, () => {
      const clock = new ClockCheck();
      const texts = offsets.map((seconds) => clock.problems(seconds * 1000));
      const all = expected.map((text) => (text === undefined ? [] : [`the node’s clock is ${text} the API server’s`]));
      assert.deepEqual(texts, all);
    });
  }
});
