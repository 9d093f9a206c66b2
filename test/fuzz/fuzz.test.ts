import assert from 'node:assert/strict';
import fc from 'fast-check';
import { collectGarbage } from '../support/garbage.ts';
import { casesOf, targetsWithCases } from './cases.ts';
import { judgeWithinBounds, play } from './engine.ts';
import type { Target } from './target.ts';
import { FOREIGN_TARGETS, TARGETS } from './targets/index.ts';

const RUNS = 1000;
/** The same inputs each time, so that a change is judged by itself; `npm run fuzz` looks for new ones. */
const SEED = 20_231;
/** Of the inputs, how many at least must be taken, and how many refused: else they reach only a part of the parser. */
const SHARE = 0.05;

describe('fuzzing', function () {
  this.timeout(60_000);

  for (const target of TARGETS) {
    it(`${target.name}: ${target.about}`, async () => {
      const { counts, failure, runs } = await target.play({ seed: SEED, runs: RUNS });
      assert.equal(failure, undefined, JSON.stringify(failure));
      assert.equal(runs, RUNS);
      assert.ok(Math.min(counts.accepted, counts.refused) > RUNS * SHARE, JSON.stringify(counts));
    });

    for (const { file, why, input } of casesOf(target.name)) {
      it(`${target.name}: ${file}, once: ${why.split('\n')[0]}`, async () => {
        await target.judgeCase(input);
      });
    }
  }

  it('keeps cases of known targets only', () => {
    const known = [...TARGETS, ...FOREIGN_TARGETS].map(({ name }) => name);
    assert.deepEqual(
      targetsWithCases().filter((name) => !known.includes(name)),
      [],
    );
  });

  const text: Pick<Target<string>, 'name' | 'about' | 'inputs'> = { name: 't', about: '', inputs: fc.string() };
  it('finds an input that is judged wrong, and makes it small', async () => {
    const wrong: Target<string> = {
      ...text,
      judge(input) {
        if (input.includes('a')) throw new Error('an a');
        return 'accepted';
      },
    };
    const { failure } = await play(wrong, { seed: 1, runs: 10_000 });
    assert.deepEqual(failure, { input: 'a', why: 'an a' });
  });

  it('notices time and memory out of proportion', async () => {
    const slow: Target<string> = {
      ...text,
      judge() {
        const begun = process.cpuUsage().user;
        while (process.cpuUsage().user < begun + 300_000);
        return 'accepted';
      },
    };
    await assert.rejects(judgeWithinBounds(slow, 'x'), /took \d{3,} ms/);
    // What others have left behind would be collected meanwhile, and make up for what is taken.
    collectGarbage();
    const kept: unknown[] = [];
    const greedy: Target<string> = {
      ...text,
      judge() {
        kept.push(new Array<number>(15_000_000).fill(0.5));
        return 'accepted';
      },
    };
    await assert.rejects(judgeWithinBounds(greedy, 'x'), /MiB for 3 characters/);
  });
});
