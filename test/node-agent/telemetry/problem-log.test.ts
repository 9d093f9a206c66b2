import assert from 'node:assert/strict';
import { createProblemLog } from '../../../node-agent/telemetry/problem-log.ts';
import { recordingLogger } from '../support.ts';

describe('the log of a recurring problem', () => {
  it('has a line when it begins, changes and ends, and none in between', () => {
    const { log, lines } = recordingLogger();
    const problems = createProblemLog(log);
    const said = () => lines.map(({ msg, problem, was }) => [msg, problem ?? was]);
    problems.gone();
    assert.deepEqual(said(), [], 'there was none');
    problems.met(new Error('down'), 'retrying');
    problems.met(new Error('down'), 'retrying');
    problems.met('refused', 'retrying');
    problems.gone();
    problems.gone();
    problems.met('refused', 'retrying');
    assert.deepEqual(said(), [
      ['retrying', 'down'],
      ['retrying', 'refused'],
      ['recovered', 'refused'],
      ['retrying', 'refused'],
    ]);
  });

  it('has at most 500 characters of it', () => {
    const { log, lines } = recordingLogger();
    const problems = createProblemLog(log);
    for (const length of [500, 501]) problems.met('x'.repeat(length), 'retrying');
    assert.deepEqual(
      lines.map(({ problem }) => problem),
      ['x'.repeat(500), `${'x'.repeat(499)}…`],
    );
  });
});
