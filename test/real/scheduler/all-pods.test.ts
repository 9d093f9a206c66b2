import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { type Replica, type Stage, startStage, topologyOf, until } from './stage.ts';

describe('the configuration for all pods on a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(120_000);
  let stage: Stage;
  let replica: Replica;

  before(async function () {
    this.timeout(120_000);
    stage = await startStage();
    replica = await stage.startReplica();
    await until('the replica to be active', () => replica.isActive());
    await stage.addNodes(['n1', 'n2', 'n3'].map((name) => ({ name, topology: topologyOf() })));
    const extenders = stage.extendersAt(replica.port, 'kube-scheduler-config-all-pods.yaml');
    await stage.startScheduler({ extenders });
  });
  after(() => stage?.stop());

  /** Calls of each verb that it takes to place the pod. */
  const callsFor = async (pod: Parameters<Stage['addPod']>[0]) => {
    const calls = async () => ({
      filter: await replica.metric('plumbline_extender_calls_total', { verb: 'filter' }),
      prioritize: await replica.metric('plumbline_extender_calls_total', { verb: 'prioritize' }),
    });
    const before = await calls();
    await stage.addPod(pod);
    await until(`${pod.name} to be bound`, async () => (await stage.podOf(pod.name)).spec.nodeName !== undefined);
    const after = await calls();
    return { filter: after.filter - before.filter, prioritize: after.prioritize - before.prioritize };
  };

  it('asks once about an ordinary pod, and for scores too about a launcher', async () => {
    assert.deepEqual(await callsFor({ name: 'ordinary', cpu: '500m', devices: [] }), { filter: 1, prioritize: 0 });
    assert.deepEqual(await callsFor({ name: 'launcher', cpu: '4' }), { filter: 1, prioritize: 1 });
  });

  it('places ordinary pods and launchers while no extender answers', async () => {
    await replica.stop('SIGKILL');
    for (const pod of [
      { name: 'ordinary-alone', cpu: '500m', devices: [] },
      { name: 'launcher-alone', cpu: '4' },
    ]) {
      await stage.addPod(pod);
      await until(`${pod.name} to be bound`, async () => (await stage.podOf(pod.name)).spec.nodeName !== undefined);
    }
  });
});
