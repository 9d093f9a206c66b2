import assert from 'node:assert/strict';
import { createNeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { podOf } from '../extender-fixture.ts';

const reader = createNeedsReader('all');
const SCHEDULED = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/60 nodes' };
const viewOf = (conditions: object[], more: object = {}, spec: object = {}) => {
  const pod = podOf('500m', ['devices.kubevirt.io/kvm']);
  return podViewOf(
    observedPod.parse({ ...pod, spec: { ...pod.spec, ...spec }, status: { conditions, ...more } }),
    reader,
  );
};

describe('a pod without CPUs of its own', () => {
  it('is kept while the scheduler finds no node for it, by that condition alone', () => {
    assert.ok(viewOf([SCHEDULED]));
    assert.ok(viewOf([{ ...SCHEDULED, type: 'Ready' }, SCHEDULED]));
    assert.equal(viewOf([{ ...SCHEDULED, type: 'Ready' }]), undefined);
    assert.equal(viewOf([{ ...SCHEDULED, status: 'True' }]), undefined);
    assert.equal(viewOf([]), undefined);
  });

  it('has a node only where a node is named', () => {
    const { node, nominated } = viewOf([SCHEDULED], { nominatedNodeName: '' }, { nodeName: '' }) ?? assert.fail();
    assert.deepEqual([node, nominated], [undefined, undefined]);
    assert.equal(viewOf([SCHEDULED], { nominatedNodeName: 'n1' })?.nominated, 'n1');
    assert.equal(viewOf([SCHEDULED], { phase: 'Running' }, { nodeName: 'n1' }), undefined, 'it runs');
  });
});
