import assert from 'node:assert/strict';
import { recordingLogger } from '../../support/logger.ts';
import { mutationOf, patched, podVector, requestFor } from '../launcher-fixture.ts';

describe('the mutation of pods', () => {
  const POD = { group: '', version: 'v1', kind: 'Pod' };
  for (const [what, kind, operation] of [
    ['another kind', { ...POD, kind: 'Service' }, 'CREATE'],
    ['an update of a pod', POD, 'UPDATE'],
  ] as const) {
    it(`allows ${what} and looks nothing up`, async () => {
      const lookUpVmi = () => assert.fail('no VMI is needed');
      const answer = await mutationOf({ lookUpVmi })(requestFor(podVector(), { kind, operation }));
      assert.deepEqual(answer, { allowed: true });
    });
  }

  it('logs one line for each launcher that it pads or refuses and each pod that it cannot read, except in a dry run', async () => {
    const { log, lines } = recordingLogger();
    const mutate = mutationOf({ log });
    const refused = podVector();
    refused.metadata.annotations['k8s.v1.cni.cncf.io/networks'] = '[{"name":';
    const unreadable = podVector();
    unreadable.metadata.ownerReferences[0]!.name = 'x'.repeat(1e6);
    for (const dryRun of [true, false]) {
      const padded = patched(podVector(), await mutate(requestFor(podVector(), { dryRun })));
      await mutate(requestFor(padded, { dryRun }));
      await mutate(requestFor(refused, { dryRun }));
      await mutate(requestFor(unreadable, { dryRun }));
    }
    assert.deepEqual(
      lines.map(({ msg, vmi, cpusBefore, cpusAfter, code }) => [msg, vmi, code ?? `${cpusBefore} to ${cpusAfter}`]),
      [
        ['launcher padded to whole cores', 'telco-east/dpdk-fwd-01', '9 to 10'],
        ['launcher refused', 'telco-east/dpdk-fwd-01', 400],
        ['unreadable pod refused', undefined, 'undefined to undefined'],
      ],
    );
    assert.match(String(lines[1]?.['reason']), /networks/);
    assert.match(String(lines[2]?.['reason']), /ownerReferences\.0\.name: longer than 253 characters$/);
  });
});
