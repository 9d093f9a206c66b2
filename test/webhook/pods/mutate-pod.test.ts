import assert from 'node:assert/strict';
import { announcementsOf, mutationOf, podVector, recordedEvents, requestFor } from '../launcher-fixture.ts';

describe('the mutation of pods', () => {
  const POD = { group: '', version: 'v1', kind: 'Pod' };
  for (const [what, kind, operation] of [
    ['another kind', { ...POD, kind: 'Service' }, 'CREATE'],
    ['an update of a pod', POD, 'UPDATE'],
    ['a deletion of another kind', { ...POD, kind: 'Service' }, 'DELETE'],
  ] as const) {
    it(`allows ${what} and looks nothing up`, async () => {
      const lookUpVmi = () => assert.fail('no VMI is needed');
      const answer = await mutationOf({ lookUpVmi })(requestFor(podVector(), { kind, operation }));
      assert.deepEqual(answer, { allowed: true });
    });
  }

  it('changes a launcher that is created', async () => {
    const answer = await mutationOf()(requestFor(podVector(), { kind: POD, operation: 'CREATE' }));
    assert.ok(answer.allowed && (answer.patch ?? []).length > 0);
  });

  for (const dryRun of [true, false]) {
    it(`writes ${dryRun ? 'no Event' : 'an Event'} ${dryRun ? 'in a dry run' : 'on the VMI of a padded launcher'}`, async () => {
      const events = recordedEvents();
      await mutationOf({ announcements: announcementsOf(events) })(requestFor(podVector(), { dryRun }));
      assert.equal(events.events.length > 0, !dryRun);
    });
  }
});
