import assert from 'node:assert/strict';
import { pauseOf, type VmFacts } from '../../diagnosis/facts.ts';
import { podState } from '../../diagnosis/launcher.ts';
import { type REASONS, worst } from '../../diagnosis/reasons.ts';
import { tooLargeFor } from '../../model/placement/verdict.ts';
import type { PodShape } from '../../model/shapes.ts';
import { needs, node, physnet } from '../model/placement/fixture.ts';
import { ANNOTATED, launcher, VM } from './fixture.ts';

function state({ pod, ...facts }: Partial<VmFacts>) {
  const { causes, remedies, ...rest } = podState({ ...VM, ...facts }, pod!);
  return { ...rest, causes: causes.map(({ reason }) => reason), remedies: remedies.map(({ id }) => id) };
}
const on = (phase: string, more: Partial<NonNullable<PodShape['status']>> = {}) => ({
  spec: { nodeName: 'n1' },
  status: { phase, ...more },
});
const NODE = { silent: false, assigned: ['2-5'], host: node() };

describe('the state of a VM with a launcher', () => {
  it('is being deleted, which hides all problems but not that it has ended', () => {
    const metadata = { annotations: ANNOTATED, deletionTimestamp: '2026-11-01T10:00:00Z' };
    const stopping = { state: 'stopping', verdict: 'stopped', reason: 'Deleting', causes: [], remedies: [] };
    const expected = { ...stopping, text: 'it is being deleted on n1' };
    assert.deepEqual(state({ pod: launcher({ metadata, ...on('Running') }) }), expected);
    assert.deepEqual(state({ pod: launcher({ metadata }) }), { ...expected, text: 'it is being deleted' });
    assert.equal(state({ pod: launcher({ metadata, ...on('Succeeded') }) }).state, 'stopped');
    assert.equal(state({ pod: launcher({ metadata, ...on('Failed') }) }).state, 'failed');
  });

  it('waits for a node, and its worst state counts', () => {
    assert.equal(state({ pod: launcher({ status: { phase: 'Pending' } }) }).state, 'waiting');
    assert.equal(state({ pod: launcher({ spec: { nodeName: '' } }) }).state, 'waiting');
    const metadata = { annotations: ANNOTATED, labels: { 'kubevirt.io': 'virt-launcher' } };
    assert.deepEqual(state({ pod: launcher({ metadata }) }), {
      state: 'waiting',
      for: 'node',
      verdict: 'broken',
      reason: 'WebhookMissed',
      text: 'the webhook did not see this launcher: it has no decision annotation',
      causes: ['NotTried'],
      remedies: ['start-again', 'bring-scheduler-back'],
    });
  });

  it('has a remedy for several causes once', () => {
    const pod = launcher({ metadata: { annotations: ANNOTATED }, spec: { schedulerName: 'other' } });
    const scheduler = { leads: true };
    const { remedies } = podState({ ...VM, scheduler }, pod);
    const texts = remedies.map(({ id, text }) => `${id} ${text}`);
    assert.deepEqual(texts, [...new Set(texts)]);
    assert.equal(remedies.map(({ id }) => id).join(), 'start-again,check-other-scheduler,start-again');
    const mask = { annotations: { 'plumbline.dev/cpu-mask': '1:2' } };
    const dead = { ...NODE, deadDpu: 'dead', assigned: ['2-3', '8'] };
    const split = podState({ ...VM, node: dead }, launcher({ ...on('Running') }));
    assert.deepEqual(
      [split.reason, split.causes.map(({ reason }) => reason), split.remedies.map(({ id }) => id)],
      ['DPUNotReady', ['SplitCores', 'Aligned'], ['bring-dpu-back', 'place-again']],
    );
    assert.equal(state({ pod: launcher({ metadata: mask, ...on('Pending') }) }).state, 'starting');
  });

  it('runs with unreadable needs, which are not judged', () => {
    const pod = launcher({ metadata: { annotations: ANNOTATED }, cpus: 'four', ...on('Running') });
    const expected = { state: 'running', verdict: 'ok', reason: 'SharedCpus', text: 'on n1', causes: [], remedies: [] };
    assert.deepEqual(state({ pod, node: NODE }), expected);
  });

  it('is paused, with other problems as causes', () => {
    const instance = { phase: 'Running', pause: { atStart: false, text: 'PausedByUser', since: '' } };
    const found = state({ pod: launcher(on('Running')), node: NODE, instance });
    assert.deepEqual([found.state, found.reason, found.causes], ['paused', 'Paused', []]);
    const pod = launcher({ metadata: { annotations: ANNOTATED }, ...on('Running') });
    const unseen = state({ pod, node: NODE, instance });
    assert.deepEqual([unseen.state, unseen.reason, unseen.causes], ['paused', 'WebhookMissed', ['Paused']]);
  });
});

describe('the worst reason', () => {
  it('has the worst verdict, or is the first of equals', () => {
    const reason = (...reasons: (keyof typeof REASONS)[]) => worst(reasons.map((one) => ({ reason: one })))?.reason;
    assert.equal(reason(), undefined);
    assert.equal(reason('Running', 'Aligned'), 'Running');
    assert.equal(reason('Running', 'Paused', 'Starting', 'SplitCores', 'Failed'), 'Failed');
    assert.equal(reason('Starting', 'SplitCores', 'NetworkGone'), 'SplitCores');
  });
});

describe('the pause of a guest', () => {
  const since = '2026-11-01T10:00:00Z';
  const paused = { type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: since };
  const stored = (text: string) => ({ annotations: { 'plumbline.dev/paused-start': text } });
  const at = (changes: object) => [{ ...paused, ...changes }];
  for (const [title, metadata, conditions, atStart] of [
    ['none', stored('waiting'), undefined, undefined],
    ['none by its status', stored('waiting'), at({ status: 'False' }), undefined],
    ['another condition', stored('waiting'), at({ type: 'Ready' }), undefined],
    ['at its start', stored('waiting'), [...at({ type: 'Ready' }), paused], true],
    ['at its start, as recorded', stored(`paused ${since}`), [paused], true],
    ['later', stored(`paused ${since}`), at({ lastTransitionTime: '2026-11-01T11:00:00Z' }), false],
    ['without a time', stored(`paused ${since}`), at({ lastTransitionTime: undefined }), false],
    ['by its user, without a record', {}, [paused], false],
  ] as const) {
    it(title, () => assert.equal(pauseOf({ metadata, status: { conditions } })?.atStart, atStart));
  }
  it('has the reason and the time of the condition, if any', () => {
    const pause = (conditions: object[]) => pauseOf({ metadata: {}, status: { conditions } } as never);
    assert.deepEqual(pause([paused]), { atStart: false, text: 'PausedByUser', since });
    const without = at({ reason: undefined, lastTransitionTime: undefined });
    assert.deepEqual(pause(without), { atStart: false, text: '', since: '' });
  });
});

describe('whether a pod is too large for an empty node', () => {
  // All 14 unreserved CPUs have an owner.
  const full = node({ assignments: [{ podUID: 'other', container: 'c', cpus: '2-15' }] });
  for (const [title, wanted, host, kind] of [
    ['all CPUs', needs('p', 14), full, undefined],
    ['one core more', needs('p', 16), full, 'too-few-whole-cores'],
    ['a missing network, but enough room', needs('p', 4, [physnet('gone')]), full, undefined],
  ] as const) {
    it(title, () => assert.equal(tooLargeFor(wanted, host)?.kind, kind));
  }
  it('an unpredictable kubelet is judged by the number of CPUs', () => {
    const unpredictable = node({ kubeletVersion: 'v1.99.0' });
    assert.equal(tooLargeFor(needs('p', 14), unpredictable), undefined);
    assert.equal(tooLargeFor(needs('p', 15), unpredictable)?.kind, 'too-few-whole-cores');
  });
});
