import assert from 'node:assert/strict';
import { cut } from '../../model/errors.ts';
import { casesOf } from './engine.ts';
import { TARGETS } from './targets/index.ts';

const RUNS = 1000;
/** The same inputs each time, so that a change is judged by itself; `npm run fuzz` searches for new ones. */
const SEED = 20_231;
/** Minimum shares of accepted and of refused inputs: with fewer, the inputs reach only a part of the parser. */
const SHARE = 0.05;
/** Characters of a failure message, because its input may have megabytes. */
const MAX_SHOWN_CHARACTERS = 4000;

describe('fuzzing', function () {
  this.timeout(300_000);

  // The test runner keeps complete stacks, which for an error deep within a text cost more than the text.
  const { stackTraceLimit } = Error;
  before(() => {
    Error.stackTraceLimit = 10;
  });
  after(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });

  for (const target of TARGETS) {
    it(`${target.name}: ${target.about}`, async () => {
      const { counts, failure, runs } = await target.play({ seed: SEED, runs: RUNS });
      if (failure !== undefined)
        assert.fail(`${failure.why}: ${cut(JSON.stringify(failure.input), MAX_SHOWN_CHARACTERS)}`);
      assert.equal(runs, RUNS);
      assert.ok(Math.min(counts.accepted, counts.refused) > RUNS * SHARE, JSON.stringify(counts));
    });

    for (const { file, why, input } of casesOf(target.name)) {
      it(`${target.name}: ${file}, once: ${why.split('\n')[0]}`, async () => {
        await target.judgeCase(input);
      });
    }
  }
});
