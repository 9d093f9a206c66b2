import { deepEqual, equal } from 'node:assert/strict';
import { offeredByDefault } from '../../../bench/scale/scheduling.ts';
import { offeredNames } from '../../../bench/scheduler-plugin/nodes.ts';

describe('bench/scale/scheduling', () => {
  it('offers as many names as kube-scheduler does by default', () => {
    deepEqual([50, 100, 200, 500, 5000, 15_000].map(offeredByDefault), [50, 100, 100, 230, 500, 750]);
  });

  it('offers each name at most once, and others in the next call', () => {
    const [first, second] = [0, 1].map((seed) => new Set(offeredNames(5000, seed, 500)));
    deepEqual([first!.size, second!.size], [500, 500]);
    equal(
      [...first!].every((name) => second!.has(name)),
      false,
    );
  });
});
