import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { isNotFound } from '../../../kube/client.ts';
import { until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { report, type Stage, startStage, topologyOf } from './stage.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';
const REFUSAL = /its kubelet refused a pod of this shape: UnexpectedAdmissionError/;
const owning = (cpus: string) => topologyOf({ assignments: [{ podUID: 'other', container: 'compute', cpus }] });

describe('a kubelet that rejects what was predicted to fit, with a real kube-scheduler', function () {
  onControlPlane(this);
  let stage: Stage;

  before(async () => {
    stage = await startStage();
    // The fullest node is the first choice.
    await stage.addNodes([{ name: 'refuser', topology: owning('1-3,9-11') }]);
    await stage.addNodes(['n1', 'n2'].map((name) => ({ name, topology: topologyOf() })));
    await stage.startReplica();
    await stage.startScheduler();
  });
  after(() => stage?.stop());

  const place = async (name: string) => {
    await stage.addPod({ name, cpu: '4' });
    return stage.bound(name);
  };

  it('gets one pod; its successor and the pods of others go to other nodes at once', async () => {
    assert.equal(await place('first'), 'refuser');
    const status = { phase: 'Failed', reason: 'UnexpectedAdmissionError', message: 'Pod was rejected' };
    await stage.client.patch(`${PODS}/first/status`, MERGE, { status });
    await stage.client.delete(`${PODS}/first`, { query: { gracePeriodSeconds: 0 } });
    const nodes: string[] = [];
    for (const name of ['successor', 'a', 'b', 'c', 'd', 'e']) nodes.push(await place(name));
    assert.deepEqual(nodes.toSorted(), ['n1', 'n1', 'n1', 'n2', 'n2', 'n2']);
  });

  it('is the reason for which a pod waits once no other node is left, until its report changes', async () => {
    await stage.addPod({ name: 'last', cpu: '4' });
    await until('it to wait', async () => REFUSAL.test(await stage.waitsFor('last')));
    await report(stage.client, 'refuser', owning('1-2,9-10'));
    assert.equal(await stage.bound('last'), 'refuser');
  });

  it('evicts a pod whose allocation the node’s agent refuses, and none for the text of a kubelet', async () => {
    const more = { nodeSelector: { 'kubernetes.io/hostname': 'n1' } };
    await stage.addPod({ name: 'claimed', cpu: '2', more });
    await stage.bound('claimed');
    const { uid } = (await stage.podOf('claimed')).metadata;
    const message =
      'device plugin PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = x';
    const state = { waiting: { reason: 'InvalidImageName', message } };
    const compute = { name: 'compute', state, ready: false, restartCount: 0, image: 'none', imageID: '' };
    const status = { phase: 'Pending', containerStatuses: [compute] };
    await stage.client.patch(`${PODS}/claimed/status`, MERGE, { status });
    await delay(1500);
    assert.equal((await stage.podOf('claimed')).metadata.deletionTimestamp, undefined);
    const text = 'CPUs 4-5,12-13 are not on NUMA node 0, where physnet0 is';
    const refusals = [{ podUID: uid, namespace: 'default', podName: 'claimed', container: 'compute', message: text }];
    await report(stage.client, 'n1', topologyOf({ refusals }));
    await until('an Event to say so', async () => {
      const { items } = (await stage.client.get('/api/v1/namespaces/default/events')) as {
        items: { reason: string; message: string }[];
      };
      return items.some((event) => event.reason === 'EvictedBeforeStart' && event.message.includes(text));
    });
    await assert.rejects(stage.podOf('claimed'), isNotFound);
  });
});
