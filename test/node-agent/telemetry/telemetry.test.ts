import assert from 'node:assert/strict';
import { createAgentMetrics, createBoundedLabel } from '../../../node-agent/telemetry/metrics.ts';
import { ProblemLog } from '../../../node-agent/telemetry/problem-log.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { recordingLogger } from '../support.ts';

describe('the log of a recurring problem', () => {
  it('has a line for its begin, for each change and for its end', () => {
    const { log, lines } = recordingLogger();
    const problems = new ProblemLog(log);
    problems.recovered();
    problems.failed(new Error('away'), 'publishing the node topology failed; retrying');
    problems.failed('away', 'publishing the node topology failed; retrying');
    problems.failed(new Error('busy'), 'publishing the node topology failed; retrying');
    problems.recovered();
    problems.recovered();
    problems.failed('busy', 'renewing the agent’s Lease failed; retrying');
    assert.deepEqual(
      lines.map(({ level, msg, reason, was }) => [level, msg, reason ?? was]),
      [
        [40, 'publishing the node topology failed; retrying', 'away'],
        [40, 'publishing the node topology failed; retrying', 'busy'],
        [30, 'recovered', 'busy'],
        [40, 'renewing the agent’s Lease failed; retrying', 'busy'],
      ],
    );
  });

  it('shortens a problem to 500 characters', () => {
    const { log, lines } = recordingLogger();
    const problems = new ProblemLog(log);
    problems.failed('x'.repeat(500), 'DPU is not ready');
    problems.failed(`${'y'.repeat(500)}z`, 'DPU is not ready');
    const texts = lines.map(({ reason }) => String(reason));
    assert.equal(texts[0], 'x'.repeat(500));
    assert.match(texts[1] ?? '', /^y{490,500}…$/);
  });
});

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
