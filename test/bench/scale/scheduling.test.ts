import { deepEqual } from 'node:assert/strict';
import { offeredByDefault } from '../../../bench/scale/scheduling.ts';

describe('bench/scale/scheduling', () => {
  it('offers as many names as kube-scheduler does by default', () => {
    deepEqual([50, 100, 200, 500, 5000, 15_000].map(offeredByDefault), [50, 100, 100, 230, 500, 750]);
  });
});
