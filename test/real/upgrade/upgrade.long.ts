import assert from 'node:assert/strict';
import { play } from '../../faults/play.ts';
import { UPGRADE } from '../../faults/scenarios/upgrade.ts';
import { buildOnce } from '../../support/bundles.ts';
import { needs, skipFor } from '../../support/parts.ts';
import { PREVIOUS_RELEASE, previousRelease } from '../../support/previous.ts';

describe('an upgrade and a rollback on a real control plane', function () {
  needs('linux');
  needs('controlPlane');
  needs('kubectl');
  needs('twoCpus');
  needs('root');
  this.timeout(1_800_000);
  before(() => buildOnce());

  let notes: readonly string[] = [];

  it('refuses no admission, promises no CPU twice, and keeps Open vSwitch off VM CPUs while VMs come and go', async () => {
    const seed = Date.now() % 2 ** 31;
    const outcome = await play(UPGRADE, { ground: 'real', seed, vms: UPGRADE.vms });
    notes = outcome.notes;
    for (const note of notes) console.log(`      ${note}`);
    const again = `npm run test:long -- faults --on real --scenario ${UPGRADE.name} --seed ${seed}`;
    assert.deepEqual(outcome.problems, [], `logs: ${outcome.logs}; again: ${again}`);
  });

  // Nested, because mocha runs the tests of a suite before its inner suites.
  describe('the previous release', () => {
    it('is the one whose daemons were replaced', function () {
      const previous = previousRelease();
      if (previous === undefined) return skipFor(PREVIOUS_RELEASE, this);
      assert.ok(
        notes.some((note) => note.includes(previous.name)),
        notes.join('\n'),
      );
    });
  });
});
