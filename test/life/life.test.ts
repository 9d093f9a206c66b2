import assert from 'node:assert/strict';
import { buildOnce } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';
import { generate, KINDS, type Step } from './events.ts';
import { failureText, playLives, shrink } from './lives.ts';

const EVENTS = 300;
const SEED = 1;

describe('the life of a node', function () {
  needs('linux');
  needs('openVswitch');
  this.timeout(1_200_000);

  it(`in ${EVENTS} random events the report, the Lease and Open vSwitch agree with the truth`, async () => {
    buildOnce();
    const { events, failures } = await playLives({
      seed: SEED,
      events: EVENTS,
      parallel: 5,
      calm: 0.04,
      without: [],
      shrinkSeconds: 240,
      goesOn: false,
      progress: () => {},
    });
    assert.equal(failures.map(failureText).join('\n'), '');
    assert.equal(events, EVENTS);
  });

  it('has events of every kind, and ends every fault', () => {
    const kinds = new Set(generate(SEED, 5000, 0).map(({ kind }) => kind));
    assert.deepEqual([...kinds].sort(), [...KINDS.keys()].sort());
    assert.ok(KINDS.size >= 30, String(KINDS.size));
    for (const { ends } of KINDS.values()) assert.ok(ends === undefined || KINDS.has(ends), ends);
  });

  it('is shortened to the events that a failure needs', async () => {
    const steps = generate(SEED, 40, 0);
    const [first, second] = [steps[7], steps[31]] as [Step, Step];
    const fails = async (shorter: readonly Step[]) => shorter.includes(first) && shorter.includes(second);
    assert.deepEqual(await shrink(steps, { parallel: 4, seconds: 60, fails }), [first, second]);
  });
});
