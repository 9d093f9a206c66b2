import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { withoutLauncher } from '../../diagnosis/state.ts';
import { ANNOTATED, shown, VM } from './fixture.ts';

const VIRT_CONTROLLER =
  'check-virt-controller: check virt-controller: kubectl -n kubevirt get pods -l kubevirt.io=virt-controller';
const EVENTS = 'read-events: see its Events: kubectl -n tenants get events --field-selector involvedObject.name=fw';
const of = (facts: Partial<VmFacts>) => shown(withoutLauncher({ ...VM, ...facts }));
const ON = { shouldRun: true, says: '' };

describe('a VM without a launcher', () => {
  describe('without an instance', () => {
    it('waits for KubeVirt', () => {
      const expected = {
        reason: 'NoInstance',
        text: 'KubeVirt has not created its instance yet',
        remedies: [VIRT_CONTROLLER],
      };
      assert.deepEqual(of({}), expected);
      assert.deepEqual(of({ machine: ON }), expected);
      assert.deepEqual(of({ machine: { ...ON, says: 'Starting' } }), {
        ...expected,
        text: 'KubeVirt has not created its instance yet (it says Starting)',
      });
    });

    it('is stopped', () =>
      assert.deepEqual(of({ machine: { shouldRun: false, says: 'Stopped' } }), {
        reason: 'SwitchedOff',
        text: 'it is switched off',
        remedies: ['start: switch it on: virtctl start fw -n tenants'],
      }));

    it('cannot be started, which takes precedence over stopped', () => {
      const expected = {
        reason: 'LauncherDenied',
        text: 'KubeVirt cannot start it: no such instancetype',
        remedies: ['correct-vm: change what the message says'],
      };
      assert.deepEqual(of({ machine: { ...ON, failure: 'no such instancetype' } }), expected);
      assert.deepEqual(of({ machine: { shouldRun: false, says: '', failure: 'no such instancetype' } }), expected);
    });
  });

  describe('with an instance', () => {
    it('waits for KubeVirt, whatever its VM reports', () =>
      assert.deepEqual(of({ machine: { ...ON, failure: 'before' }, instance: { phase: 'Pending' } }), {
        reason: 'NoLauncher',
        text: 'KubeVirt has not created its launcher',
        remedies: [VIRT_CONTROLLER],
      }));

    for (const [phase, reason] of [
      ['Failed', 'Failed'],
      ['Succeeded', 'Ended'],
    ] as const) {
      it(`has ended: ${phase}`, () => {
        const text = `its instance has ended (${phase}) and its launcher is gone`;
        assert.deepEqual(of({ instance: { phase } }), { reason, text, remedies: [EVENTS] });
        assert.deepEqual(of({ instance: { phase, reason: 'GuestShutdown' } }), {
          reason,
          text: `its instance has ended (${phase}: GuestShutdown) and its launcher is gone`,
          remedies: [EVENTS],
        });
      });
    }

    const QUOTA =
      'raise-quota: raise the namespace’s quota: it counts the whole launcher, which is the guest’s CPUs, one for an ' +
      'isolated emulator, padding to whole cores, and KubeVirt’s side containers (15m for the console log): ' +
      'kubectl -n tenants describe resourcequota';
    const LIMITS =
      'raise-limit-range: raise the LimitRange of the namespace, or ask for less: kubectl -n tenants describe limitrange';
    for (const [refusal, reason, help] of [
      [
        'failed calling webhook "launcher.plumbline.dev": EOF',
        'WebhookUnavailable',
        'bring-webhook-back: repair the webhook: kubectl -n plumbline-system get pods; plumbline doctor webhook certificates',
      ],
      [
        'denied the request: plumbline: the CPU mask is wrong',
        'WebhookDenied',
        'correct-vm: change the VM as the webhook says',
      ],
      ['exceeded quota: cpus', 'QuotaExceeded', QUOTA],
      ['maximum cpu usage per Container is 4', 'LimitRangeExceeded', LIMITS],
      ['denied by the LimitRange', 'LimitRangeExceeded', LIMITS],
      ['exceeded quota: maximum cpu usage per namespace', 'QuotaExceeded', QUOTA],
      [
        'failed calling webhook "policy.example.com": EOF',
        'LauncherDenied',
        'correct-vm: change what the message says',
      ],
    ] as const) {
      it(`has its launcher refused: ${refusal}`, () =>
        assert.deepEqual(of({ instance: { phase: 'Pending', refusal } }), {
          reason,
          text:
            reason === 'WebhookUnavailable'
              ? 'the webhook does not answer (EOF), so KubeVirt cannot create its launcher'
              : `KubeVirt cannot create its launcher: ${refusal}`,
          remedies: [help],
        }));
    }
  });

  describe('after a rejection by a kubelet', () => {
    const rejection = { node: 'n1', reason: 'SMTAlignmentError', message: 'requested 3 cpus' };
    const WHY = 'rejected its launcher (SMTAlignmentError): requested 3 cpus; KubeVirt has deleted it';
    const annotations = ANNOTATED;

    it('reports the rejection rather than the instance', () =>
      assert.deepEqual(of({ rejection, annotations, instance: { phase: 'Failed' } }), {
        reason: 'UnpaddedRejected',
        text: `the kubelet of n1 ${WHY}, and starts another`,
        remedies: [
          'start-again: start the VM again once the webhook works: plumbline doctor webhook; virtctl restart fw -n tenants',
        ],
      }));

    for (const [title, machine, node, text] of [
      ['without numbers', ON, 'n1', `the kubelet of n1 ${WHY}, and starts another`],
      ['once', { ...ON, failures: 1 }, 'n1', `the kubelet of n1 ${WHY}, and starts another`],
      ['twice', { ...ON, failures: 2 }, 'n1', `the kubelet of n1 ${WHY} (2 times in a row), and starts another`],
      ['now', { ...ON, retryIn: 0 }, 'n1', `the kubelet of n1 ${WHY}, and starts another`],
      ['soon', { ...ON, retryIn: 0.2 }, 'n1', `the kubelet of n1 ${WHY}, and starts another in 1 s`],
      ['of an instance without a VM', undefined, 'n1', `the kubelet of n1 ${WHY}, and starts another`],
      ['on an unknown node', ON, undefined, `the kubelet ${WHY}, and starts another`],
    ] as const) {
      it(`reports how often and when it starts again: ${title}`, () =>
        assert.equal(of({ machine, rejection: { ...rejection, node }, annotations }).text, text));
    }

    it('ignores any other reason', () =>
      assert.equal(of({ rejection: { ...rejection, reason: 'Evicted' } }).reason, 'NoInstance'));
  });
});
