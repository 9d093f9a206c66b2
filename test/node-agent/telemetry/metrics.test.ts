import assert from 'node:assert/strict';
import { createAgentMetrics, createBoundedLabel } from '../../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';

describe('metric labels with foreign values', () => {
  it('keep the first values; later and longer ones become other', () => {
    const label = createBoundedLabel(2);
    assert.deepEqual(['a', 'b', 'c', 'a'].map(label), ['a', 'b', 'other', 'a']);
    assert.equal(createBoundedLabel()('x'.repeat(200)), 'other');
  });

  it('give a bounded number of series for an unbounded number of physnets', async () => {
    const registry = new Registry();
    const { registrations, resourceLabel } = createAgentMetrics(registry);
    for (let i = 0; i < 5000; i++) {
      registrations.inc({ resource: resourceLabel(`physnet.plumbline.dev/n${i}`), outcome: 'registered' });
    }
    const { values } = await registrations.get();
    assert.equal(values.length, 513);
  });
});
