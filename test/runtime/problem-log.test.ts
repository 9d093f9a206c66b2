import assert from 'node:assert/strict';
import type { AgentLogger } from '../../node-agent/telemetry/log-messages.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { recordingLogger } from '../support/logger.ts';

describe('the log of a recurring problem', () => {
  it('has a line for its begin, for each change and for its end', () => {
    const { log, lines } = recordingLogger();
    const problems = new ProblemLog(log as AgentLogger);
    problems.recovered();
    problems.failed(new Error('away'), 'publishing the node topology failed; retrying');
    problems.failed('away', 'publishing the node topology failed; retrying');
    problems.failed(new Error('busy'), 'publishing the node topology failed; retrying');
    problems.recovered();
    problems.recovered();
    problems.failed('busy', 'renewing the agent’s Lease failed; retrying');
    const logged = lines.map(({ level, msg, reason, warning, was, lastedSeconds }) =>
      [level, msg, reason, warning, was, lastedSeconds].filter((field) => field !== undefined).join(', '),
    );
    assert.deepEqual(logged, [
      '40, publishing the node topology failed; retrying, away',
      '40, publishing the node topology failed; retrying, busy',
      '30, recovered, publishing the node topology failed; retrying, busy, 0',
      '40, renewing the agent’s Lease failed; retrying, busy',
    ]);
  });

  it('shortens a problem to 500 characters', () => {
    const { log, lines } = recordingLogger();
    const problems = new ProblemLog(log as AgentLogger);
    problems.failed('x'.repeat(500), 'DPU is not ready');
    problems.failed(`${'y'.repeat(500)}z`, 'DPU is not ready');
    const texts = lines.map(({ reason }) => String(reason));
    assert.equal(texts[0], 'x'.repeat(500));
    assert.match(texts[1] ?? '', /^y{490,500}…$/);
  });
});
