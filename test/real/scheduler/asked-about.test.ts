import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type Replica, report, type Stage, startStage, topologyOf } from './stage.ts';

const SCOPED = 'kube-scheduler-config.yaml';
const ALL_PODS = 'kube-scheduler-config-all-pods.yaml';

describe('calls of a real kube-scheduler, by its configuration', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let replica: Replica;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    replica = await stage.startReplica();
    await until('the replica to be active', () => replica.isActive());
    await stage.addNodes(['n1', 'n2', 'n3'].map((name) => ({ name, topology: topologyOf() })));
    for (const file of [SCOPED, ALL_PODS]) {
      await stage.startScheduler({ name: file, extenders: stage.extendersAt(replica.port, file) });
    }
  });
  after(() => stage?.stop());

  /** The number of calls of each verb until the pod is placed. */
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

  const by = (schedulerName: string) => ({ more: { schedulerName } });

  it('scoped: none for an ordinary pod; filter and scores for a launcher', async () => {
    const ordinary = { name: 'passes-by', cpu: '500m', devices: [], ...by(SCOPED) };
    assert.deepEqual(await callsFor(ordinary), { filter: 0, prioritize: 0 });
    assert.deepEqual(await callsFor({ name: 'launcher', cpu: '4', ...by(SCOPED) }), { filter: 1, prioritize: 1 });
  });

  it('scoped: no node is written for pods without calls, gated ones and launchers that fit nowhere', async () => {
    // A replica that has just taken over treats any refusal as one of the previous replica.
    await delay(10_000);
    const nowhere = { nodeSelector: { 'example.org/none': '' } };
    await stage.addPod({ name: 'web', cpu: '500m', devices: [], more: { schedulerName: SCOPED, ...nowhere } });
    await stage.addPod({ name: 'vm-nowhere', cpu: '4', more: { schedulerName: SCOPED, ...nowhere } });
    const schedulingGates = [{ name: 'example.org/quota' }];
    await stage.addPod({ name: 'gated', cpu: '4', more: { schedulerName: SCOPED, schedulingGates } });
    for (const name of ['web', 'vm-nowhere', 'gated']) {
      await until(`${name} to be unscheduled`, async () => {
        const { conditions = [] } = (await stage.podOf(name)).status;
        return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False');
      });
    }
    // Each report may mean that the node has room.
    for (const name of ['n1', 'n2', 'n3']) await report(stage.client, name, topologyOf({ kubeletVersion: 'v1.36.1' }));
    // Longer than the three nodes take at one per second.
    await delay(5000);
    const rechecks = await replica.metric('plumbline_extender_rechecks_total');
    const waiting = await replica.metric('plumbline_extender_waiting_pods');
    console.log(`      ${rechecks} nodes touched, ${waiting} pods waiting`);
    assert.deepEqual([rechecks, waiting], [0, 0]);
  });

  it('all pods: filter for an ordinary pod; the same as scoped for a launcher', async () => {
    const ordinary = { name: 'ordinary', cpu: '500m', devices: [], ...by(ALL_PODS) };
    assert.deepEqual(await callsFor(ordinary), { filter: 1, prioritize: 0 });
    assert.deepEqual(await callsFor({ name: 'launcher-2', cpu: '4', ...by(ALL_PODS) }), { filter: 1, prioritize: 1 });
  });

  it('all pods: ordinary pods and launchers are placed unchecked while no extender answers', async () => {
    await replica.stop('SIGKILL');
    for (const pod of [
      { name: 'ordinary-alone', cpu: '500m', devices: [], ...by(ALL_PODS) },
      { name: 'launcher-alone', cpu: '4', ...by(ALL_PODS) },
    ]) {
      await stage.addPod(pod);
      await until(`${pod.name} to be bound`, async () => (await stage.podOf(pod.name)).spec.nodeName !== undefined);
    }
  });
});
