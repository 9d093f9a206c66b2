import assert from 'node:assert/strict';
import type { NodeGroup, VmFacts } from '../../diagnosis/facts.ts';
import { waitingPod } from '../../diagnosis/waiting.ts';
import type { PodShape } from '../../model/shapes.ts';
import { launcher, shown, VM } from './fixture.ts';

const BRING_BACK = 'bring-scheduler-back';
const REFUSED = { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes' }] };
const TRIED = { conditions: [{ type: 'PodScheduled', status: 'Unknown' }] };

function waiting(facts: Partial<VmFacts> = {}, status?: PodShape['status'], spec: Partial<PodShape['spec']> = {}) {
  return shown(waitingPod({ ...VM, ...facts }, launcher({ spec, status })));
}

const group = (kind: NodeGroup['kind'], count = 1, more: Partial<NodeGroup> = {}): NodeGroup => ({
  kind,
  text: `text of ${kind}`,
  count,
  nodes: ['n1'],
  detail: `detail of ${kind}`,
  ...more,
});
const search = (nodes: number, ...groups: readonly NodeGroup[]) => ({ search: { nodes, groups } });

describe('a pod that waits for a node', () => {
  it('is blocked by scheduling gates, which take precedence over its scheduler', () => {
    const gates = { schedulingGates: [{ name: 'a/b' }, { name: 'c/d' }] };
    const { text } = waiting({ scheduler: { away: 'silent' } }, undefined, gates);
    assert.equal(text, 'it is waiting because of scheduling gates: a/b, c/d');
    assert.equal(waiting({}, undefined, { schedulingGates: [] }).reason, 'NotTried');
    assert.equal(waiting({}, undefined, { schedulingGates: null }).reason, 'NotTried');
  });

  it('has a scheduler that is down, or whose extender does not answer: before what the nodes could take', () => {
    const extenderAway = 'the extender in pod a did not answer (connection refused)';
    const away = { scheduler: { extenderAway }, ...search(1, group('fits')) };
    assert.equal(waiting(away, REFUSED).reason, 'ExtenderAway');
    assert.equal(waiting(away, REFUSED, { schedulerName: 'other' }).reason, 'RetryPending');
    assert.equal(waiting({ scheduler: { away: 'no replica leads', extenderAway } }).reason, 'SchedulerAway');
    assert.equal(waiting({ scheduler: {} }, REFUSED).reason, 'NoNodeFits');
  });

  it('has an extender that did not answer kube-scheduler, by the error in its condition', () => {
    const failed = (message: string) =>
      waiting({}, { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulerError', message }] });
    const message = 'Post "http://127.0.0.1:8888/filter": dial tcp 127.0.0.1:8888: connect: connection refused';
    assert.deepEqual(failed(message), {
      reason: 'ExtenderAway',
      text: `its call failed: ${message}`,
      remedies: [BRING_BACK],
    });
    assert.equal(failed('running "VolumeBinding" filter plugin: error').reason, 'NoNodeFits');
  });

  it('is nominated, unless every node was checked', () => {
    const status = { ...REFUSED, nominatedNodeName: 'n2' };
    assert.deepEqual(waiting({}, status), {
      reason: 'Nominated',
      text: 'nominated to n2: it waits for resources there',
      remedies: [],
    });
    assert.equal(waiting({}, { ...REFUSED, nominatedNodeName: '' }).reason, 'NoNodeFits');
    assert.equal(waiting(search(1, group('fits')), status).reason, 'RetryPending');
  });

  it('has not been tried by its scheduler', () => {
    const text = 'the scheduler has not tried it yet';
    assert.equal(waiting({}, { conditions: null }).text, text);
    assert.equal(waiting({}, { conditions: [{ type: 'Ready', status: 'False', message: 'm' }] }).text, text);
    assert.equal(waiting(search(1, group('resources'))).text, 'the only node: text of resources');
  });

  for (const schedulerName of ['other', undefined, '']) {
    it(`has not been tried by a scheduler other than Plumbline's: ${JSON.stringify(schedulerName)}`, () =>
      assert.deepEqual(waiting({}, undefined, { schedulerName }).remedies, ['check-other-scheduler']));
  }

  it('was refused: the scheduler’s message if the nodes were not checked', () => {
    assert.equal(waiting({ silent: new Set(['n1']) }, REFUSED).text, '0/3 nodes; the agent on n1 is silent');
    assert.equal(waiting({ silent: new Set(['n1', 'n2']) }, REFUSED).text, '0/3 nodes; 2 agents are silent');
    assert.deepEqual(waiting({}, REFUSED), { reason: 'NoNodeFits', text: '0/3 nodes', remedies: [] });
    const silent = { reason: 'NoNodeFits', text: 'the scheduler found no node and gave no reason', remedies: [] };
    assert.deepEqual(waiting({}, TRIED), silent);
    assert.deepEqual(waiting({}, { conditions: [{ type: 'PodScheduled', status: 'False' }] }), silent);
    assert.deepEqual(waiting({}, { conditions: [{ type: 'PodScheduled', status: 'False', message: '' }] }), silent);
    // The first condition of this kind.
    const conditions = [{ type: 'Ready', status: 'False', message: 'other' }, ...REFUSED.conditions];
    assert.equal(waiting({}, { conditions }).text, '0/3 nodes');
  });

  it('was refused: in the form of a prediction, the extender’s reason before kube-scheduler’s own', () => {
    const preemption =
      ' no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.';
    const dead = '1 DPU not ready: dead, last renewal 60 s ago';
    const room = '1 no room on the NUMA nodes of a required network';
    for (const [message, expected] of [
      [
        `0/4 nodes are available: 2 node(s) were unschedulable, ${dead}, ${room}.${preemption}`,
        'kube-scheduler: none of 4 nodes can take it; closest match: DPU not ready: dead, last renewal 60 s ago',
      ],
      [`0/4 nodes are available: 4 Insufficient cpu.${preemption}`, 'kube-scheduler: all 4 nodes: Insufficient cpu'],
      [
        '0/4 nodes are available: 4 too small. preemption: 0/4 nodes are available: 4 x.',
        'kube-scheduler: all 4 nodes: too small',
      ],
      ['0/1 nodes are available: 1 too small.', 'kube-scheduler: the only node: too small'],
      ['0/1 nodes are available: 1 a. no new claims to deallocate.', 'kube-scheduler: the only node: a'],
      ['0/0 nodes are available: no nodes available to schedule pods.', undefined],
      ['0/7 nodes are available', undefined],
      ['running PreFilter plugin "x": error', undefined],
    ] as const) {
      const conditions = [{ type: 'PodScheduled', status: 'False', message }];
      assert.equal(waiting({}, { conditions }).text, expected ?? message);
    }
  });

  it('was refused although nodes would accept it', () =>
    assert.equal(
      waiting(search(7, group('resources', 2), group('fits', 3), group('fits', 2)), REFUSED).text,
      'it is pending although 5 of 7 nodes could run it',
    ));

  it('cannot be predicted on the nodes that might accept it', () => {
    const unknown = { ...group('not-predicted', 2), detail: 'its agent does not report' };
    const { reason, text, remedies } = waiting(search(2, unknown), REFUSED);
    assert.equal(reason, 'RetryPending');
    assert.equal(text, 'no node is predicted to take it; 2 of 2 nodes cannot be predicted: its agent does not report');
    assert.equal(remedies[0], 'check-agent');
  });

  for (const [title, found, text] of [
    ['no nodes', search(0), 'the cluster has no nodes'],
    ['one node', search(1, group('cordoned')), 'the only node: text of cordoned'],
    ['similar nodes', search(2, group('cordoned', 2)), 'all 2 nodes: text of cordoned'],
    [
      'several groups',
      search(3, group('cordoned', 2), group('not-ready')),
      'none of 3 nodes can take it; closest match: text of cordoned',
    ],
  ] as const) {
    it(`was refused: ${title}`, () => assert.equal(waiting(found, REFUSED).text, text));
  }

  for (const [kinds, reason] of [
    [['too-large'], 'TooLarge'],
    [['too-large', 'larger-than-cells'], 'TooLarge'],
    [['too-large', 'not-selected', 'no-such-network', 'tainted'], 'TooLarge'],
    [['too-large', 'cordoned'], 'NoNodeFits'],
    [['too-few-cpus'], 'NoNodeFits'],
    [['not-selected', 'tainted'], 'NoNodeFits'],
    [[], 'NoNodeFits'],
  ] as const) {
    it(`is too large for the cluster or not: ${kinds.join(', ')}`, () =>
      assert.equal(waiting(search(9, ...kinds.map((kind) => group(kind))), REFUSED).reason, reason));
  }
});
