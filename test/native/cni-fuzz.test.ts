import assert from 'node:assert/strict';
import { needs } from '../support/parts.ts';
import { fuzzGate } from './fuzz.ts';

describe('the CNI plugin with sanitizers', function () {
  this.timeout(300_000);
  needs('gcc');
  needs('make');

  it('gives each of 2,000 random calls an answer in the form of the specification, without a report', () => {
    const { calls, outcomes, problems } = fuzzGate(2000, 7);
    assert.deepEqual(problems, []);
    assert.equal(calls, 2000);
    // The calls reach every part: refusals of each kind, results, and delegates that ran.
    for (const outcome of ['result', 'nothing', 'code 1', 'code 4', 'code 6', 'code 7', 'code 11']) {
      assert.ok((outcomes[outcome] ?? 0) > 0, `no ${outcome} in ${JSON.stringify(outcomes)}`);
    }
  });
});
