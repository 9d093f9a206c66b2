import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { cut } from '../../model/errors.ts';
import { collectGarbage } from '../support/garbage.ts';
import type { WorkCounter } from '../support/work-counter.ts';
import { casesOf, targetsWithCases } from './cases.ts';
import { judgeWithinBounds, play } from './engine.ts';
import { fedText, type Target } from './target.ts';
import { FOREIGN_TARGETS, TARGETS } from './targets/index.ts';
import { countWork, holdToWork } from './work.ts';

const RUNS = 1000;
/** Inputs whose work is counted in a separate process. */
const WORK_RUNS = 200;
const TSX = ['--import', 'tsx'];
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

  it('has cases of known targets only', () => {
    const known = [...TARGETS, ...FOREIGN_TARGETS].map(({ name }) => name);
    assert.deepEqual(
      targetsWithCases().filter((name) => !known.includes(name)),
      [],
    );
  });

  it('keeps each parser within its work limit', async () => {
    const script = join(import.meta.dirname, 'work-run.ts');
    const args = [...TSX, script, '--runs', `${WORK_RUNS}`, '--seed', `${SEED}`];
    const { stdout } = await promisify(execFile)(process.execPath, args).catch((error: unknown) => {
      throw new Error((error as { stdout?: string }).stdout || String(error));
    });
    assert.equal(stdout.match(/work of \d+ inputs/g)?.length, TARGETS.length, stdout);
  });

  const text: Pick<Target<string>, 'name' | 'about' | 'inputs' | 'fed' | 'work'> = {
    name: 't',
    about: '',
    inputs: fc.string(),
    fed: fedText(() => undefined),
    work: { base: 10, each: 1 },
  };
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

  it('notices one of thousands of inputs with too much work, and makes it small', async () => {
    let count = 0;
    const counter: WorkCounter = {
      take() {
        const taken = count;
        count = 0;
        return taken;
      },
      stop: () => undefined,
    };
    const squared: Target<string> = {
      ...text,
      judge: () => 'accepted',
      fed: fedText((input) => {
        count += input.startsWith('ab') ? input.length ** 2 + 10 : input.length / 2;
      }),
    };
    const found = await countWork(squared, counter, { seed: 1, runs: 50_000 });
    assert.match(String(found.failure?.input), /^ab/);
    assert.equal(String(found.failure?.input).length, 2, 'four blocks for two bytes, and ten more than allowed');
    assert.match(found.failure?.why ?? '', /^14 blocks of code for 2 bytes, at most 12/);
    const even: Target<string> = {
      ...squared,
      fed: fedText((input) => {
        count += input.length;
      }),
    };
    assert.equal((await countWork(even, counter, { seed: 1, runs: 5000 })).failure, undefined);
    await assert.rejects(holdToWork(squared, counter, ['abc']), /19 blocks of code for 3 bytes, at most 13/);
  });

  it('notices disproportionate time and memory', async () => {
    const slow: Target<string> = {
      ...text,
      judge() {
        const begun = process.cpuUsage().user;
        while (process.cpuUsage().user < begun + 300_000);
        return 'accepted';
      },
    };
    await assert.rejects(judgeWithinBounds(slow, 'x'), /took \d{3,} ms/);
    // Earlier garbage would be collected during the run and hide the new memory.
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
