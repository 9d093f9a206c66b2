import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { failedPod } from '../../diagnosis/rejected.ts';
import { launcher, shown, VM } from './fixture.ts';

describe('a pod that has failed', () => {
  it('gets no command for a VM if it has none', () => {
    const status = { reason: 'SMTAlignmentError', message: 'requested 3 cpus' };
    const pod = launcher({ metadata: { annotations: {} }, status });
    const commandsOf = (kind: VmFacts['kind']) =>
      failedPod({ ...VM, kind }, pod).remedies.map((remedy) => remedy.commands.length);
    assert.deepEqual([commandsOf('vm'), commandsOf('vmi')], [[2], [0]]);
  });

  for (const [title, status, text] of [
    ['reason and message', { reason: 'OutOfcpu', message: 'no room' }, 'it has failed of n1: OutOfcpu: no room'],
    ['a reason', { reason: 'OutOfcpu' }, 'it has failed of n1: OutOfcpu'],
    ['a message', { message: 'no room' }, 'it has failed of n1: no room'],
    ['nothing', undefined, 'it has failed of n1: no reason is given'],
  ] as const) {
    it(`failed with ${title}`, () =>
      assert.deepEqual(shown(failedPod(VM, launcher({ spec: { nodeName: 'n1' }, status }))), {
        reason: 'Failed',
        text,
        remedies: ['read-events'],
      }));
  }

  it('without a name gets the name of its VM', () => {
    const pod = launcher({ metadata: {} });
    const { name: _, ...metadata } = pod.metadata;
    const { text, remedies } = failedPod(VM, { ...pod, metadata });
    assert.equal(text, 'it has failed: no reason is given');
    assert.ok(remedies[0]?.commands[0]?.args.includes('involvedObject.name=fw'));
  });
});
