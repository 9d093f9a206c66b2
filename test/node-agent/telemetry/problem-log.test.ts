import assert from 'node:assert/strict';
import { createProblemLog } from '../../../node-agent/telemetry/problem-log.ts';
import { recordingLogger } from '../support.ts';

describe('the log of a recurring problem', () => {
  it('has a line for its begin, for each change and for its end', () => {
    const { log, lines } = recordingLogger();
    const problems = createProblemLog(log);
    problems.gone();
    problems.met(new Error('away'), 'asking failed; retrying');
    problems.met('away', 'asking failed; retrying');
    problems.met(new Error('busy'), 'asking failed; retrying');
    problems.gone();
    problems.gone();
    problems.met('busy', 'asking failed again');
    assert.deepEqual(
      lines.map(({ level, msg, problem, was }) => [level, msg, problem ?? was]),
      [
        [40, 'asking failed; retrying', 'away'],
        [40, 'asking failed; retrying', 'busy'],
        [30, 'recovered', 'busy'],
        [40, 'asking failed again', 'busy'],
      ],
    );
  });

  it('shortens a problem to 500 characters', () => {
    const { log, lines } = recordingLogger();
    const problems = createProblemLog(log);
    problems.met('x'.repeat(500), 'failed');
    problems.met(`${'y'.repeat(500)}z`, 'failed');
    const texts = lines.map(({ problem }) => String(problem));
    assert.equal(texts[0], 'x'.repeat(500));
    assert.match(texts[1] ?? '', /^y{490,500}…$/);
  });
});
