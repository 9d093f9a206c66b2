import assert from 'node:assert/strict';
import { createThreadMetrics } from '../../../node-agent/ovs-affinity/problems.ts';
import { testMetrics } from '../support.ts';

describe('metrics of threads', () => {
  it('count the moves of a pass, and a pass without a move does not change the time of the last one', async () => {
    const metrics = testMetrics();
    const { record } = createThreadMetrics(metrics);
    const pass = (moved: number) =>
      record('ovs-vswitchd', [{ threads: 3, moved, displaced: 0, clipped: 0, errors: [] }]);
    const moves = async () => (await metrics.ovsMoves.get()).values.map(({ value }) => value);
    const changes = async () => (await metrics.ovsLastChange.get()).values.length;
    pass(0);
    assert.deepEqual([await moves(), await changes()], [[], 0]);
    pass(2);
    pass(0);
    pass(1);
    assert.deepEqual([await moves(), await changes()], [[3], 1]);
  });
});
