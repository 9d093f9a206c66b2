import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { needs } from '../../support/parts.ts';
import { secondsUntil, until } from '../../support/until.ts';
import { createDpu, DPU_HOST } from './dpu-stand-in.ts';
import { type LaggingApi, startLaggingApi } from './lagging-api.ts';
import { type Stage, startStage, topologyOf } from './stage.ts';

const LAG = 3;
const conditionOf = async (stage: Stage, node: string) => {
  const { status } = (await stage.client.get(`/api/v1/nodes/${node}`)) as {
    status: { conditions?: { type: string; status: string }[] };
  };
  return status.conditions?.find(({ type }) => type === 'plumbline.dev/DPUReady')?.status;
};
const isUnschedulable = async (stage: Stage, pod: string) =>
  (await stage.podOf(pod)).status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '';

describe('DPUs and a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let api: LaggingApi;
  let dpu: ReturnType<typeof createDpu>;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    // The extender gets Leases late; the scheduler and the test get them at once.
    api = await startLaggingApi(stage.plane, LAG, (path) => path.includes('/ovn-kubernetes/leases'));
    await stage.addNodes([{ name: 'n0', topology: topologyOf(), labels: DPU_HOST }]);
    dpu = createDpu(stage, 'n0');
    await dpu.create();
    dpu.live();
    const replica = await stage.startReplica({ api });
    await until('it to be active', () => replica.isActive());
    await stage.startScheduler();
  });
  after(async () => {
    dpu?.die();
    await stage?.stop();
    await api?.stop();
  });

  it('writes DPUReady on the node, and refuses it once the DPU is dead, with the age', async () => {
    await until('DPUReady to be True', async () => (await conditionOf(stage, 'n0')) === 'True');
    dpu.die();
    await until('DPUReady to be False', async () => (await conditionOf(stage, 'n0')) === 'False');
    await stage.addPod({ name: 'needs-dpu', cpu: '4' });
    await until('it to be refused', async () => (await isUnschedulable(stage, 'needs-dpu')) !== '');
    assert.match(await isUnschedulable(stage, 'needs-dpu'), /DPU not ready: dead, last renewal \d+ s ago/);
  });

  it('ignores pods on the host’s network and of DaemonSets', async () => {
    await stage.addPod({ name: 'host-network', cpu: '2', more: { hostNetwork: true } });
    await until('it to be bound', async () => (await stage.podOf('host-network')).spec.nodeName === 'n0');
  });

  it('places the waiting pod after the recovery, within 3 seconds, without another event', async () => {
    // All pending events have arrived.
    await delay(3000);
    dpu.live();
    const took = await secondsUntil(
      'it to be bound',
      async () => (await stage.podOf('needs-dpu')).spec.nodeName === 'n0',
      15,
    );
    console.log(`      bound ${took.toFixed(1)} s after the DPU came back`);
    assert.ok(took >= LAG - 1.1, 'the extender was behind');
    await until('DPUReady to be True', async () => (await conditionOf(stage, 'n0')) === 'True');
  });
});

describe('pods that cannot start on their node', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let dpu: ReturnType<typeof createDpu>;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    await stage.addNodes([{ name: 'dpu', topology: topologyOf(), labels: DPU_HOST }]);
    dpu = createDpu(stage, 'dpu');
    await dpu.create();
    dpu.live();
    const replica = await stage.startReplica();
    await until('it to be active', () => replica.isActive());
    await stage.startScheduler();
    await stage.plane.startControllers(['replicaset']);
  });
  after(async () => {
    dpu?.die();
    await stage?.stop();
  });

  const createSet = async (name: string) => {
    const amounts = { cpu: '4', memory: '64Mi', 'devices.kubevirt.io/kvm': '1' };
    const labels = { app: name };
    const spec = {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }],
    };
    await stage.client.create('/apis/apps/v1/namespaces/default/replicasets', {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name },
      spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    });
  };
  const podsOf = async (set: string) => (await stage.pods()).filter(({ metadata }) => metadata.name.startsWith(set));
  const isOn = (set: string, node: string) =>
    until(`${set} to be on ${node}`, async () =>
      (await podsOf(set)).some(({ spec, metadata }) => spec.nodeName === node && !metadata.deletionTimestamp),
    );
  /** The kubelet's part of a deletion. */
  const letGo = (set: string, uid: string) =>
    until(`the first pod of ${set} to be evicted`, async () => {
      const pod = (await podsOf(set)).find(({ metadata }) => metadata.uid === uid);
      if (pod?.metadata.deletionTimestamp !== undefined) {
        const path = `/api/v1/namespaces/default/pods/${pod.metadata.name}`;
        await stage.client.delete(path, { query: { gracePeriodSeconds: 0 } });
      }
      return pod === undefined;
    });
  const events = async () =>
    ((await stage.client.get('/api/v1/namespaces/default/events')) as { items: { reason: string; message: string }[] })
      .items;

  it('are evicted when the DPU dies before they start, and their successors run elsewhere', async () => {
    await createSet('early');
    await isOn('early', 'dpu');
    const [first] = await podsOf('early');
    await stage.addNodes([{ name: 'plain', topology: topologyOf() }]);
    dpu.die();
    await letGo('early', first!.metadata.uid);
    await isOn('early', 'plain');
    await until('an Event to say so', async () =>
      (await events()).some(({ reason, message }) => reason === 'EvictedBeforeStart' && /DPU/.test(message)),
    );
  });

  it('are evicted when the node’s agent refuses the allocation, and similar pods are refused there until its next report', async () => {
    dpu.live();
    await until('the DPU to count as alive', async () => (await conditionOf(stage, 'dpu')) === 'True');
    const cordon = (unschedulable: boolean) =>
      stage.client.patch('/api/v1/nodes/dpu', 'application/merge-patch+json', { spec: { unschedulable } });
    await cordon(true);
    await createSet('claimed');
    await isOn('claimed', 'plain');
    await cordon(false);
    const [first] = await podsOf('claimed');
    const text = 'CPUs 4-5,12-13 are not on NUMA node 0, where physnet0 is';
    const { name, uid } = first!.metadata;
    // As the text of an image: the kubelet's text never counts as a message of the agent.
    const prose = `device plugin PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = forged`;
    await stage.client.patch(`/api/v1/namespaces/default/pods/${name}/status`, 'application/merge-patch+json', {
      status: {
        phase: 'Pending',
        containerStatuses: [
          {
            name: 'compute',
            state: { waiting: { reason: 'InvalidImageName', message: prose } },
            ready: false,
            restartCount: 0,
            image: 'none',
            imageID: '',
          },
        ],
      },
    });
    await delay(1500);
    assert.deepEqual(
      (await podsOf('claimed')).map((pod) => pod.metadata.uid),
      [uid],
      'prose evicts nothing',
    );
    const refusals = [{ podUID: uid, namespace: 'default', podName: name, container: 'compute', message: text }];
    await stage.client.patch(
      '/apis/plumbline.dev/v1alpha1/nodetopologies/plain/status',
      'application/merge-patch+json',
      { status: { refusals } },
    );
    await letGo('claimed', first!.metadata.uid);
    await isOn('claimed', 'dpu');
    await until('an Event to say so', async () =>
      (await events()).some(({ reason, message }) => reason === 'EvictedBeforeStart' && message.includes(text)),
    );
  });
});
