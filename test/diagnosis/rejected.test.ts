import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { failedPod } from '../../diagnosis/rejected.ts';
import type { PodShape } from '../../model/shapes.ts';
import { ANNOTATED, launcher, shown, VM } from './fixture.ts';

const EVENTS =
  'read-events: see its Events: kubectl -n tenants get events --field-selector involvedObject.name=virt-launcher-fw-abcde';

/** @param annotations of the pod, which take precedence over those of the VM */
function failed(status: PodShape['status'], annotations = {}, facts: Partial<VmFacts> = {}, nodeName?: string) {
  const pod = launcher({ metadata: { name: 'virt-launcher-fw-abcde', annotations }, spec: { nodeName }, status });
  return shown(failedPod({ ...VM, ...facts }, pod));
}

describe('a pod that has failed', () => {
  const IF_AGAIN =
    'wait: another pod got its CPUs first, and it is retried; if this happens again, look for a second scheduler: ' +
    'plumbline doctor extender';
  const PATCH =
    "'" +
    '{"spec":{"template":{"metadata":{"annotations":{"kubevirt.io/CPUManagerPolicyBetaOptions":"full-pcpus-only"}}}}}' +
    "'";
  const ANNOTATE =
    'add-annotation: opt in to whole cores: annotate the VM’s template with ' +
    'kubevirt.io/CPUManagerPolicyBetaOptions: full-pcpus-only and start it again';
  for (const [reason, message, annotations, expected, help] of [
    ['SMTAlignmentError', 'not enough free physical CPUs: 2', {}, 'CoresTaken', IF_AGAIN],
    [
      'SMTAlignmentError',
      'requested 3 cpus',
      {},
      'UnalignedRejected',
      `${ANNOTATE}: kubectl -n tenants patch virtualmachine fw --type merge -p ${PATCH}; virtctl restart fw -n tenants`,
    ],
    [
      'SMTAlignmentError',
      'requested 3 cpus',
      ANNOTATED,
      'UnpaddedRejected',
      'start-again: start the VM again once the webhook works: plumbline doctor webhook; virtctl restart fw -n tenants',
    ],
    [
      'TopologyAffinityError',
      'no locality',
      {},
      'TopologyRejected',
      'check-extender: no NUMA nodes have all requested resources: find nodes with free CPUs, and check that its scheduler calls the ' +
        'extender: plumbline top; plumbline doctor extender',
    ],
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
    const { remedies } = failed({ reason: 'SMTAlignmentError', message: 'requested 3 cpus' }, {}, { kind: 'vmi' });
    assert.deepEqual(remedies, [ANNOTATE]);
  });

  it('was evicted: see its successor', () =>
    assert.deepEqual(failed({ reason: 'Evicted', message: 'm' }, {}, { events: { evicted: 'the DPU has died' } }), {
      reason: 'EvictedBeforeStart',
      text: 'it was evicted before it started: the DPU has died',
      remedies: ['look-at-successor: its owner creates another pod, which goes to another node: check that pod'],
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
    assert.deepEqual(shown(failedPod(VM, { ...pod, metadata })), {
      reason: 'Failed',
      text: 'it has failed: no reason is given',
      remedies: ['read-events: see its Events: kubectl -n tenants get events --field-selector involvedObject.name=fw'],
    });
  });
});
