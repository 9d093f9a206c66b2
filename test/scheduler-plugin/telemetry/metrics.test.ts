import assert from 'node:assert/strict';
import { createRegistry } from '../../../runtime/metrics.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';

describe('the metrics of the extender', () => {
  it('have each result of a prediction from the start, so that an alert sees the first one as an increase', async () => {
    const { values } = await createExtenderMetrics(createRegistry()).predictions.get();
    const results = ['as_predicted', 'other_cpus', 'rejected', 'not_compared'];
    assert.deepEqual(
      values.map(({ labels, value }) => [labels.result, value]),
      results.map((result) => [result, 0]),
    );
  });
});
