import assert from 'node:assert/strict';
import { buildOnce } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';
import { play } from './play.ts';
import { SCENARIOS } from './scenarios/index.ts';

/** The short form of `npm run test:long -- faults`: the fastest scenario, with fewer VMs. */
const SCENARIO = SCENARIOS.find(({ name }) => name === 'watch-cut')!;
const VMS = 40;

describe('faults on the sandbox', function () {
  needs('linux');
  this.timeout(300_000);
  before(() => buildOnce());

  it(`${SCENARIO.name}: ${SCENARIO.title}`, async () => {
    const seed = Date.now() % 2 ** 31;
    const { problems, logs } = await play(SCENARIO, { ground: 'sandbox', seed, vms: VMS });
    const again = `npm run test:long -- faults --on sandbox --scenario ${SCENARIO.name} --vms ${VMS} --seed ${seed}`;
    assert.deepEqual(problems, [], `logs: ${logs}; again: ${again}`);
  });
});
