import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { withoutLauncher } from '../../diagnosis/state.ts';
import { ANNOTATED, shown, VM } from './fixture.ts';

const VIRT_CONTROLLER = 'check-virt-controller';
const EVENTS = 'read-events';
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
        remedies: ['start'],
      }));

    it('cannot be started, which takes precedence over stopped', () => {
      const expected = {
        reason: 'LauncherDenied',
        text: 'KubeVirt cannot start it: no such instancetype',
        remedies: ['correct-vm'],
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

    for (const [refusal, reason, id] of [
      ['failed calling webhook "launcher.plumbline.dev": EOF', 'WebhookUnavailable', 'bring-webhook-back'],
      ['denied the request: plumbline: the CPU mask is wrong', 'WebhookDenied', 'correct-vm'],
      ['exceeded quota: cpus', 'QuotaExceeded', 'raise-quota'],
      ['maximum cpu usage per Container is 4', 'LimitRangeExceeded', 'raise-limit-range'],
      ['denied by the LimitRange', 'LimitRangeExceeded', 'raise-limit-range'],
      ['exceeded quota: maximum cpu usage per namespace', 'QuotaExceeded', 'raise-quota'],
      ['failed calling webhook "policy.example.com": EOF', 'LauncherDenied', 'correct-vm'],
    ] as const) {
      it(`has its launcher refused: ${refusal}`, () => {
        const cause = withoutLauncher({ ...VM, instance: { phase: 'Pending', refusal } });
        assert.deepEqual([cause.reason, cause.remedies.map((remedy) => remedy.id)], [reason, [id]]);
      });
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
        remedies: ['start-again'],
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
