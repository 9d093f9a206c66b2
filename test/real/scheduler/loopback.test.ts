import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { createDpu, DPU_HOST } from './dpu-stand-in.ts';
import { type Pair, report, type Stage, startStage, topologyOf } from './stage.ts';

const ORDINARY = { cpu: '500m', devices: [] };
const LAUNCHER = { cpu: '4' };

/** manifests/scheduler/loopback as shipped: the extender next to the kube-scheduler of the cluster, which elects a leader. */
describe('an extender next to the cluster’s own real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  needs('root');
  this.timeout(300_000);
  let stage: Stage;
  let first: Pair;
  let second: Pair;
  let dpu: ReturnType<typeof createDpu>;

  before(async () => {
    stage = await startStage();
    await stage.addNodes(['n1', 'n2', 'n3'].map((name) => ({ name, topology: topologyOf() })));
    await stage.addNodes([{ name: 'dpu', topology: topologyOf(), labels: DPU_HOST }]);
    dpu = createDpu(stage, 'dpu');
    await dpu.create();
    first = await stage.startPair('control-plane-1', 'loopback');
    await until('the extender of the first to be active', () => first.extender.isActive());
    second = await stage.startPair('control-plane-2', 'loopback');
  });
  after(async () => {
    dpu?.die();
    await stage?.stop();
  });

  const bound = (name: string) =>
    until(`${name} to be bound`, async () => (await stage.podOf(name)).spec.nodeName !== undefined);

  /** The number of calls of each verb until the pod is placed. */
  const callsFor = async (pod: Parameters<Stage['addPod']>[0]) => {
    const calls = async () => ({
      filter: await first.extender.metric('plumbline_extender_calls_total', { verb: 'filter' }),
      prioritize: await first.extender.metric('plumbline_extender_calls_total', { verb: 'prioritize' }),
    });
    const before = await calls();
    await stage.addPod(pod);
    await bound(pod.name);
    const after = await calls();
    return { filter: after.filter - before.filter, prioritize: after.prioritize - before.prioritize };
  };

  it('is active only next to the leader, although all are ready', async () => {
    assert.ok(await second.extender.isReady());
    assert.deepEqual([await first.extender.isActive(), await second.extender.isActive()], [true, false]);
  });

  it('is asked about every pod, and for scores only about launchers', async () => {
    // The first prediction of a process takes longest. kube-scheduler requests no scores if only one node was
    // predicted in time.
    await callsFor({ name: 'first', ...LAUNCHER });
    assert.deepEqual(await callsFor({ name: 'ordinary', ...ORDINARY }), { filter: 1, prioritize: 0 });
    assert.deepEqual(await callsFor({ name: 'launcher', ...LAUNCHER }), { filter: 1, prioritize: 1 });
  });

  it('writes no node for pods that kube-scheduler itself refuses, and for gated ones', async () => {
    // A replica that has just become active treats any refusal as one of the previous replica.
    await delay(10_000);
    const nowhere = { nodeSelector: { 'example.org/none': '' } };
    await stage.addPod({ name: 'web-nowhere', ...ORDINARY, more: nowhere });
    await stage.addPod({ name: 'vm-nowhere', ...LAUNCHER, more: nowhere });
    await stage.addPod({ name: 'gated', ...LAUNCHER, more: { schedulingGates: [{ name: 'example.org/quota' }] } });
    for (const name of ['web-nowhere', 'vm-nowhere', 'gated']) {
      await until(`${name} to be unscheduled`, async () => {
        const { conditions = [] } = (await stage.podOf(name)).status;
        return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False');
      });
    }
    // Each report may mean that the node has room.
    for (const name of ['n1', 'n2', 'n3']) await report(stage.client, name, topologyOf({ kubeletVersion: 'v1.36.1' }));
    // Longer than the three nodes take at one per second.
    await delay(5000);
    const metrics = ['plumbline_extender_rechecks_total', 'plumbline_extender_waiting_pods'];
    assert.deepEqual(await Promise.all(metrics.map((name) => first.extender.metric(name))), [0, 0]);
  });

  it('keeps ordinary pods off a node whose DPU is dead', async () => {
    const on = { nodeSelector: { 'kubernetes.io/hostname': 'dpu' } };
    dpu.live();
    await stage.addPod({ name: 'while-alive', ...ORDINARY, more: on });
    await bound('while-alive');
    await delay(2000);
    dpu.die();
    await stage.addPod({
      name: 'while-dead',
      ...ORDINARY,
      more: { ...on, schedulingGates: [{ name: 'example.org/x' }] },
    });
    const conditionOf = async () => {
      const { status } = (await stage.client.get('/api/v1/nodes/dpu')) as {
        status: { conditions?: { type: string; status: string }[] };
      };
      return status.conditions?.find(({ type }) => type === 'plumbline.dev/DPUReady')?.status;
    };
    await until('the DPU to count as dead', async () => (await conditionOf()) === 'False');
    const path = '/api/v1/namespaces/default/pods/while-dead';
    await stage.client.patch(path, 'application/merge-patch+json', { spec: { schedulingGates: [] } });
    await until('it to be refused', async () => {
      const { conditions = [] } = (await stage.podOf('while-dead')).status;
      return conditions.some(({ message = '' }) => message.includes('DPU not ready: dead'));
    });
    assert.equal((await stage.podOf('while-dead')).spec.nodeName, undefined);
  });

  it('becomes active when its kube-scheduler takes over, and is then asked', async () => {
    await first.scheduler.stop();
    await until('the extender of the second to be active', () => second.extender.isActive());
    await until('the first to be passive', async () => !(await first.extender.isActive()));
    await stage.addPod({ name: 'after-takeover', ...LAUNCHER });
    await bound('after-takeover');
    assert.ok((await second.extender.metric('plumbline_extender_calls_total', { verb: 'filter' })) > 0);
  });

  it('blocks no pod while it is down: ordinary pods and launchers are placed unchecked', async () => {
    await second.extender.stop('SIGKILL');
    for (const pod of [
      { name: 'ordinary-alone', ...ORDINARY },
      { name: 'launcher-alone', ...LAUNCHER },
    ]) {
      await stage.addPod(pod);
      await bound(pod.name);
    }
  });
});
