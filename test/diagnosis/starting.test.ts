import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { allocationRefused, startingPod } from '../../diagnosis/starting.ts';
import { PLACE_LOST } from '../../model/names.ts';
import type { PodShape } from '../../model/shapes.ts';
import { launcher, shown, VM } from './fixture.ts';

const waiting = (reason: string, message?: string) => ({ state: { waiting: { reason, message } } });
const PRE_START = 'PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = ';
const EVENTS = 'read-events';
const NODE = { silent: false, assigned: [] };
const LOST = `node n1 ${PLACE_LOST}: its kubelet would refuse the pod`;

function starting(facts: Partial<VmFacts> = {}, status?: PodShape['status']) {
  return shown(startingPod({ ...VM, ...facts }, launcher({ spec: { nodeName: 'n1' }, status })));
}

describe('a pod on a node that has not started', () => {
  const being = {
    reason: 'Starting',
    text: 'it is on n1 and has not started: its containers are being created',
    remedies: [],
  };
  for (const [title, facts, status] of [
    ['nothing is known', {}, undefined],
    ['no container waits', {}, { containerStatuses: [{ state: {} }, {}], initContainerStatuses: null }],
    ['its containers are created', {}, { containerStatuses: [waiting('ContainerCreating', 'm')] }],
    ['its init containers run', {}, { containerStatuses: [waiting('PodInitializing')] }],
    ['a container waits without a reason', {}, { containerStatuses: [{ state: { waiting: {} } }] }],
    ['its node reports', { node: NODE }, undefined],
  ] as const satisfies readonly (readonly [string, Partial<VmFacts>, PodShape['status']])[]) {
    it(`is starting: ${title}`, () => assert.deepEqual(starting(facts, status), being));
  }

  it('has a container that does not start, perhaps without a message', () => {
    const expected = {
      reason: 'ContainerWaiting',
      text: 'it is on n1 and has not started: ImagePullBackOff: no such image',
      remedies: [EVENTS],
    };
    const container = waiting('ImagePullBackOff', 'no such image');
    const created = waiting('ContainerCreating', 'm');
    assert.deepEqual(starting({}, { containerStatuses: [created, container] }), expected);
    const { text } = starting({}, { initContainerStatuses: [container], containerStatuses: [waiting('Other', 'too')] });
    assert.equal(text, `${expected.text}; Other: too`, 'each container that waits');
    assert.equal(
      starting({}, { containerStatuses: [waiting('CrashLoopBackOff')] }).text,
      'it is on n1 and has not started: CrashLoopBackOff: ',
    );
  });

  it('has no sandbox', () => {
    const { reason, text } = starting({ events: { sandbox: 'no such network' } });
    assert.deepEqual([reason, text], ['ContainerWaiting', 'it is on n1 and has not started: no such network']);
  });

  it('has a dead DPU, by the condition of the Node before the message of the gate', () => {
    const events = { sandbox: 'plumbline: the DPU is dead' };
    const { reason, text } = starting({ node: { ...NODE, deadDpu: '61 s ago' }, events });
    assert.deepEqual([reason, text], ['DPUNotReady', 'the DPU of n1 is not ready: 61 s ago']);
    assert.equal(starting({ events }).text, 'the DPU of n1 is not ready: plumbline: the DPU is dead');
  });

  it('has CPUs that the agent refuses, by its report or by the kubelet’s message', () => {
    const expected = {
      reason: 'AllocationRefused',
      text: 'the agent on n1 refused its CPUs: CPUs 1-2',
      remedies: ['wait'],
    };
    assert.deepEqual(shown(allocationRefused('n1', 'CPUs 1-2')), expected);
    assert.deepEqual(starting({ node: { ...NODE, refusedStart: 'CPUs 1-2', deadDpu: 'dead' } }), expected);
    const said = waiting('CreateContainerError', `${PRE_START}CPUs 1-2`);
    assert.deepEqual(starting({}, { initContainerStatuses: [said] }), expected);
    // It is the last part of the text that the kubelet wraps.
    const wrapped = waiting('CreateContainerError', `${PRE_START}${PRE_START}CPUs 1-2`);
    assert.deepEqual(starting({}, { containerStatuses: [wrapped] }), expected);
  });

  for (const message of [
    'PreStartContainer rpc failed with err: rpc error: code = Unavailable desc = CPUs 1-2',
    'rpc error: code = FailedPrecondition desc = CPUs 1-2',
  ]) {
    it(`is not refused by the agent: ${message}`, () => {
      const { reason, text } = starting({}, { containerStatuses: [waiting('CreateContainerError', message)] });
      assert.deepEqual(
        [reason, text],
        ['ContainerWaiting', `it is on n1 and has not started: CreateContainerError: ${message}`],
      );
    });
  }

  it('has lost its promised CPUs, unless its kubelet has admitted it', () => {
    const events = { cannotStart: LOST };
    assert.equal(starting({ events, node: NODE }, { containerStatuses: [] }).text, `it has not started: ${LOST}`);
    assert.deepEqual(starting({ events }, { containerStatuses: [{}] }), being);
    assert.deepEqual(starting({ events }, { initContainerStatuses: [{}] }), being);
    assert.deepEqual(starting({ events: { cannotStart: 'another reason' } }), being);
  });

  it('can neither start nor be evicted, which takes precedence', () => {
    const node = { ...NODE, refusedStart: 'CPUs 1-2', deadDpu: 'dead' };
    assert.equal(starting({ node, events: { cannotEvict: 'a budget', cannotStart: LOST } }).reason, 'CannotEvict');
  });

  it('reports the first of several containers, and the name of the VM if it has no name', () => {
    const refusals = ['CPUs 1-2', 'CPUs 3-4'].map((cpus) => waiting('CreateContainerError', `${PRE_START}${cpus}`));
    assert.equal(starting({}, { containerStatuses: refusals }).text, 'the agent on n1 refused its CPUs: CPUs 1-2');
    const pod = launcher({ spec: { nodeName: 'n1' } });
    const { name: _, ...metadata } = pod.metadata;
    const facts = { ...VM, node: { ...NODE, refusedStart: 'CPUs 1-2' }, events: { cannotStart: 'held' } };
    assert.ok(startingPod(facts, { ...pod, metadata }).remedies[0]?.commands[0]?.args.includes('fw'));
  });
});
