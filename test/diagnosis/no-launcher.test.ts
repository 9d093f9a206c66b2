import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { withoutLauncher } from '../../diagnosis/no-launcher.ts';
import { ANNOTATED, shown, VM } from './fixture.ts';

const of = (facts: Partial<VmFacts>) => shown(withoutLauncher({ ...VM, ...facts }));
const ON = { shouldRun: true, says: '' };

describe('a VM without a launcher', () => {
  describe('without an instance', () => {
    it('waits for KubeVirt, whose status is quoted', () =>
      assert.equal(
        of({ machine: { ...ON, says: 'Starting' } }).text,
        'KubeVirt has not created its instance yet (it says Starting)',
      ));

    for (const shouldRun of [true, false]) {
      it(`cannot be started, which takes precedence over stopped: ${shouldRun}`, () =>
        assert.deepEqual(of({ machine: { shouldRun, says: '', failure: 'no such instancetype' } }), {
          reason: 'LauncherDenied',
          text: 'KubeVirt cannot start it: no such instancetype',
          remedies: ['correct-vm'],
        }));
    }
  });

  describe('with an instance', () => {
    it('waits for KubeVirt, whatever its VM reports', () =>
      assert.equal(of({ machine: { ...ON, failure: 'before' }, instance: { phase: 'Pending' } }).reason, 'NoLauncher'));

    for (const [phase, reason] of [
      ['Failed', 'Failed'],
      ['Succeeded', 'Ended'],
    ] as const) {
      it(`has ended: ${phase}`, () =>
        assert.deepEqual(of({ instance: { phase, reason: 'GuestShutdown' } }), {
          reason,
          text: `its instance has ended (${phase}: GuestShutdown) and its launcher is gone`,
          remedies: ['read-events'],
        }));
    }

    for (const [refusal, reason] of [
      ['denied by the LimitRange', 'LimitRangeExceeded'],
      ['exceeded quota: maximum cpu usage per namespace', 'QuotaExceeded'],
      ['failed calling webhook "policy.example.com": EOF', 'LauncherDenied'],
    ] as const) {
      it(`has its launcher refused: ${refusal}`, () =>
        assert.equal(of({ instance: { phase: 'Pending', refusal } }).reason, reason));
    }
  });

  describe('after a rejection by a kubelet', () => {
    const rejection = { node: 'n1', reason: 'SMTAlignmentError', message: 'requested 3 cpus' };
    const WHY = 'rejected its launcher (SMTAlignmentError): requested 3 cpus; KubeVirt has deleted it';
    const annotations = ANNOTATED;

    it('reports the rejection rather than the instance', () =>
      assert.equal(of({ rejection, annotations, instance: { phase: 'Failed' } }).reason, 'UnpaddedRejected'));

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
