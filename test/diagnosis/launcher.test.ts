import assert from 'node:assert/strict';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { allocationRefused, startingPod } from '../../diagnosis/launcher.ts';
import { PLACE_LOST } from '../../model/names.ts';
import type { PodShape } from '../../model/shapes.ts';
import { launcher, line, VM } from './fixture.ts';

const waiting = (reason: string, message?: string) => ({ state: { waiting: { reason, message } } });
const PRE_START = 'PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = ';
const NODE = { silent: false, assigned: [] };
const LOST = { cannotStart: `node n1 ${PLACE_LOST}: its kubelet would refuse the pod` };

function starting(facts: Partial<VmFacts> = {}, status?: PodShape['status']) {
  return line(startingPod({ ...VM, ...facts }, launcher({ spec: { nodeName: 'n1' }, status })));
}
const NOT_STARTED = 'it is on n1 and has not started';

describe('a pod on a node that has not started', () => {
  const BEING_CREATED = `Starting: ${NOT_STARTED}: its containers are being created`;
  for (const [title, facts, status] of [
    ['nothing is known', {}, undefined],
    ['its containers are created', {}, { containerStatuses: [waiting('ContainerCreating', 'm')] }],
    ['its init containers run', {}, { containerStatuses: [waiting('PodInitializing')] }],
    ['a container waits without a reason', {}, { containerStatuses: [{ state: { waiting: {} } }] }],
    ['it has lost its place, and its kubelet has admitted it', { events: LOST }, { containerStatuses: [{}] }],
    ['the same by its init containers', { events: LOST }, { initContainerStatuses: [{}] }],
    ['it cannot start for another reason', { events: { cannotStart: 'another reason' } }, undefined],
  ] as const satisfies readonly (readonly [string, Partial<VmFacts>, PodShape['status']])[]) {
    it(`is starting: ${title}`, () => assert.equal(starting(facts, status), BEING_CREATED));
  }

  const container = waiting('ImagePullBackOff', 'no such image');
  const created = waiting('ContainerCreating', 'm');
  const agentSays = (text: string) => waiting('CreateContainerError', text);
  const UNAVAILABLE = 'PreStartContainer rpc failed with err: rpc error: code = Unavailable desc = CPUs 1-2';
  const NOT_BEFORE_START = 'rpc error: code = FailedPrecondition desc = CPUs 1-2';
  for (const [title, status, expected] of [
    ['one', { containerStatuses: [created, container] }, 'ImagePullBackOff: no such image'],
    [
      'each',
      { initContainerStatuses: [container], containerStatuses: [waiting('Other', 'too')] },
      'ImagePullBackOff: no such image; Other: too',
    ],
    ['one without a message', { containerStatuses: [waiting('CrashLoopBackOff')] }, 'CrashLoopBackOff: '],
    ['the agent fails', { containerStatuses: [agentSays(UNAVAILABLE)] }, `CreateContainerError: ${UNAVAILABLE}`],
    [
      'not the agent',
      { containerStatuses: [agentSays(NOT_BEFORE_START)] },
      `CreateContainerError: ${NOT_BEFORE_START}`,
    ],
  ] as const) {
    it(`has a container that does not start: ${title}`, () =>
      assert.equal(starting({}, status), `ContainerWaiting: ${NOT_STARTED}: ${expected} [read-events]`));
  }

  it('has no sandbox', () => {
    const expected = `ContainerWaiting: ${NOT_STARTED}: no such network [read-events]`;
    assert.equal(starting({ events: { sandbox: 'no such network' } }), expected);
  });

  it('has a dead DPU, by the condition of the Node before the message of the gate', () => {
    const events = { sandbox: 'plumbline: the DPU is dead' };
    const dead = (why: string) => `DPUNotReady: the DPU of n1 is not ready: ${why} [bring-dpu-back]`;
    assert.equal(starting({ node: { ...NODE, deadDpu: '61 s ago' }, events }), dead('61 s ago'));
    assert.equal(starting({ events }), dead('plumbline: the DPU is dead'));
  });

  it('has CPUs that the agent refuses, by its report or by the kubelet’s message', () => {
    const expected = 'AllocationRefused: the agent on n1 refused its CPUs: CPUs 1-2 [wait]';
    const agentReport = agentSays(`${PRE_START}CPUs 1-2`);
    assert.equal(line(allocationRefused('n1', 'CPUs 1-2')), expected);
    assert.equal(starting({ node: { ...NODE, refusedStart: 'CPUs 1-2', deadDpu: 'dead' } }), expected);
    assert.equal(starting({}, { initContainerStatuses: [agentReport] }), expected);
    // It is the last part of the text that the kubelet wraps.
    const wrapped = agentSays(`${PRE_START}${PRE_START}CPUs 1-2`);
    assert.equal(starting({}, { containerStatuses: [wrapped] }), expected);
    assert.equal(
      starting({}, { containerStatuses: [agentReport, agentSays(`${PRE_START}CPUs 3-4`)] }),
      expected,
      'the first',
    );
  });

  it('has lost its promised CPUs', () => {
    const expected = `PlaceLost: it has not started: ${LOST.cannotStart} [delete-pod]`;
    assert.equal(starting({ events: LOST, node: NODE }, { containerStatuses: [] }), expected);
  });

  it('can neither start nor be evicted, which takes precedence', () => {
    const node = { ...NODE, refusedStart: 'CPUs 1-2', deadDpu: 'dead' };
    assert.match(starting({ node, events: { cannotEvict: 'a budget', ...LOST } }), /^CannotEvict: /);
  });
});
