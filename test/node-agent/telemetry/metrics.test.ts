import assert from 'node:assert/strict';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';

describe('metric labels with foreign values', () => {
  it('keep the first values; later and longer ones become other', () => {
    const { resourceLabel } = createAgentMetrics(new Registry());
    assert.equal(resourceLabel('x'.repeat(200)), 'other');
    const first = Array.from({ length: 512 }, (_, i) => `n${i}`);
    assert.deepEqual(first.map(resourceLabel), first);
    assert.deepEqual(['late', 'n0', 'n511'].map(resourceLabel), ['other', 'n0', 'n511']);
  });
});
