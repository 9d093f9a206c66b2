import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { failedPod } from '../../diagnosis/rejected.ts';
import type { PodShape } from '../../model/shapes.ts';
import { ANNOTATED, launcher, shown, VM } from './fixture.ts';

const EVENTS = 'read-events';

/** @param annotations of the pod, which take precedence over those of the VM */
function failed(status: PodShape['status'], annotations = {}, facts: Partial<VmFacts> = {}, nodeName?: string) {
  const pod = launcher({ metadata: { name: 'virt-launcher-fw-abcde', annotations }, spec: { nodeName }, status });
  return shown(failedPod({ ...VM, ...facts }, pod));
}

describe('a pod that has failed', () => {
  const IF_AGAIN = 'wait';
  const ANNOTATE = 'add-annotation';
  for (const [reason, message, annotations, expected, help] of [
    ['SMTAlignmentError', 'not enough free physical CPUs: 2', {}, 'CoresTaken', IF_AGAIN],
    ['SMTAlignmentError', 'requested 3 cpus', {}, 'UnalignedRejected', ANNOTATE],
    ['SMTAlignmentError', 'requested 3 cpus', ANNOTATED, 'UnpaddedRejected', 'start-again'],
    ['TopologyAffinityError', 'no locality', {}, 'TopologyRejected', 'check-extender'],
    ['UnexpectedAdmissionError', 'Allocate failed', {}, 'AdmissionRejected', IF_AGAIN],
  ] as const) {
    it(`${reason}, ${message} ${JSON.stringify(annotations)}`, () =>
      assert.deepEqual(failed({ reason, message }, annotations, { annotations: {} }, 'n1'), {
        reason: expected,
        text: `the kubelet of n1 rejected it (${reason}): ${message}`,
        remedies: [help],
      }));
  }

  it('gets no command for a VM if it has none', () => {
    const status = { reason: 'SMTAlignmentError', message: 'requested 3 cpus' };
    const pod = launcher({ metadata: { annotations: {} }, status });
    const commandsOf = (kind: VmFacts['kind']) =>
      failedPod({ ...VM, kind }, pod).remedies.map((one) => one.commands.length);
    assert.deepEqual([commandsOf('vm'), commandsOf('vmi')], [[2], [0]]);
  });

  it('was evicted: see its successor', () =>
    assert.deepEqual(failed({ reason: 'Evicted', message: 'm' }, {}, { events: { evicted: 'the DPU has died' } }), {
      reason: 'EvictedBeforeStart',
      text: 'it was evicted before it started: the DPU has died',
      remedies: ['look-at-successor'],
    }));

  for (const [title, status, text] of [
    ['reason and message', { reason: 'OutOfcpu', message: 'no room' }, 'it has failed of n1: OutOfcpu: no room'],
    ['a reason', { reason: 'OutOfcpu' }, 'it has failed of n1: OutOfcpu'],
    ['a message', { message: 'no room' }, 'it has failed of n1: no room'],
    ['nothing', undefined, 'it has failed of n1: no reason is given'],
  ] as const) {
    it(`failed with ${title}`, () =>
      assert.deepEqual(failed(status, {}, {}, 'n1'), { reason: 'Failed', text, remedies: [EVENTS] }));
  }

  it('without a name gets the name of its VM', () => {
    const pod = launcher({ metadata: {} });
    const { name: _, ...metadata } = pod.metadata;
    const { text, remedies } = failedPod(VM, { ...pod, metadata });
    assert.equal(text, 'it has failed: no reason is given');
    assert.ok(remedies[0]?.commands[0]?.args.includes('involvedObject.name=fw'));
  });
});
