import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { failedPod, withoutLauncher } from '../../diagnosis/refused.ts';
import { ANNOTATED, launcher, line, VM } from './fixture.ts';

const of = (facts: Partial<VmFacts>) => line(withoutLauncher({ ...VM, ...facts }));
const ON = { shouldRun: true, says: '' };
const reasonOf = (facts: Partial<VmFacts>) => of(facts).split(':')[0];

describe('a VM without a launcher', () => {
  const starting = { machine: { ...ON, says: 'Starting' } };
  const failing = (shouldRun: boolean) => ({ machine: { shouldRun, says: '', failure: 'no such instancetype' } });
  const ended = (phase: string) => ({ instance: { phase, reason: 'GuestShutdown' } });
  const gone = (phase: string) =>
    `its instance has ended (${phase}: GuestShutdown) and its launcher is gone [read-events]`;
  const CANNOT = 'LauncherDenied: KubeVirt cannot start it: no such instancetype [correct-vm]';
  for (const [title, facts, expected] of [
    [
      'waits for an instance, with the quoted status',
      starting,
      'NoInstance: KubeVirt has not created its instance yet (it says Starting) [check-virt-controller]',
    ],
    ['cannot be started', failing(true), CANNOT],
    ['cannot be started, which takes precedence over stopped', failing(false), CANNOT],
    ['has an instance that failed', ended('Failed'), `Failed: ${gone('Failed')}`],
    ['has an instance that ended', ended('Succeeded'), `Ended: ${gone('Succeeded')}`],
  ] as const) {
    it(title, () => assert.equal(of(facts), expected));
  }

  it('waits for KubeVirt, whatever its VM reports', () =>
    assert.equal(reasonOf({ machine: { ...ON, failure: 'before' }, instance: { phase: 'Pending' } }), 'NoLauncher'));

  for (const [refusal, reason] of [
    ['denied by the LimitRange', 'LimitRangeExceeded'],
    ['exceeded quota: maximum cpu usage per namespace', 'QuotaExceeded'],
    ['failed calling webhook "policy.example.com": EOF', 'LauncherDenied'],
  ] as const) {
    it(`has its launcher refused: ${refusal}`, () =>
      assert.equal(reasonOf({ instance: { phase: 'Pending', refusal } }), reason));
  }

  describe('after a rejection by a kubelet', () => {
    const rejection = { node: 'n1', reason: 'SMTAlignmentError', message: 'requested 3 cpus' };
    const WHY = 'rejected its launcher (SMTAlignmentError): requested 3 cpus; KubeVirt has deleted it';
    const annotations = ANNOTATED;

    it('reports the rejection rather than the instance', () =>
      assert.equal(reasonOf({ rejection, annotations, instance: { phase: 'Failed' } }), 'UnpaddedRejected'));

    for (const [title, machine, node, text] of [
      ['once', { ...ON, failures: 1 }, 'n1', `of n1 ${WHY}, and starts another`],
      ['twice', { ...ON, failures: 2 }, 'n1', `of n1 ${WHY} (2 times in a row), and starts another`],
      ['soon', { ...ON, retryIn: 0.2 }, 'n1', `of n1 ${WHY}, and starts another in 1 s`],
      ['of an instance without a VM', undefined, 'n1', `of n1 ${WHY}, and starts another`],
      ['on an unknown node', ON, undefined, `${WHY}, and starts another`],
    ] as const) {
      it(`reports how often and when it starts again: ${title}`, () => {
        const cause = of({ machine, rejection: { ...rejection, node }, annotations });
        assert.equal(cause, `UnpaddedRejected: the kubelet ${text} [start-again]`);
      });
    }

    it('ignores any other reason', () =>
      assert.equal(reasonOf({ rejection: { ...rejection, reason: 'Evicted' } }), 'NoInstance'));
  });
});

describe('a pod that has failed', () => {
  it('gets no command for a VM if it has none', () => {
    const status = { reason: 'SMTAlignmentError', message: 'requested 3 cpus' };
    const pod = launcher({ metadata: { annotations: {} }, status });
    const commandsOf = (kind: VmFacts['kind']) =>
      failedPod({ ...VM, kind }, pod).remedies.map((remedy) => remedy.commands.length);
    assert.deepEqual([commandsOf('vm'), commandsOf('vmi')], [[2], [0]]);
  });

  for (const [title, status, text] of [
    ['reason and message', { reason: 'OutOfcpu', message: 'no room' }, 'OutOfcpu: no room'],
    ['a reason', { reason: 'OutOfcpu' }, 'OutOfcpu'],
    ['a message', { message: 'no room' }, 'no room'],
    ['nothing', undefined, 'no reason is given'],
  ] as const) {
    it(`failed with ${title}`, () => {
      const cause = failedPod(VM, launcher({ spec: { nodeName: 'n1' }, status }));
      assert.equal(line(cause), `Failed: it has failed of n1: ${text} [read-events]`);
    });
  }
});
