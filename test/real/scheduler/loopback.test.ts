import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { type Pair, type Stage, startStage, topologyOf } from './stage.ts';

const ORDINARY = { cpu: '500m', devices: [] };
const LAUNCHER = { cpu: '4' };

/** manifests/scheduler/loopback as shipped: the extender next to the kube-scheduler of the cluster, which elects a leader. */
describe('an extender next to the cluster’s own real kube-scheduler', function () {
  onControlPlane(this);
  needs('root');
  let stage: Stage;
  let first: Pair;
  let second: Pair;

  before(async () => {
    stage = await startStage({ way: 'loopback' });
    await stage.addNodes(['n1', 'n2', 'n3'].map((name) => ({ name, topology: topologyOf() })));
    first = await stage.startPair('control-plane-1');
    await until('the extender of the first to be active', () => first.extender.isActive());
    second = await stage.startPair('control-plane-2');
  });
  after(() => stage?.stop());

  const callsFor = async (pod: Parameters<Stage['addPod']>[0]) => {
    const calls = async () => ({
      filter: await first.extender.metric('plumbline_extender_calls_total', { verb: 'filter' }),
      prioritize: await first.extender.metric('plumbline_extender_calls_total', { verb: 'prioritize' }),
    });
    const before = await calls();
    await stage.addPod(pod);
    await stage.bound(pod.name);
    const after = await calls();
    return { filter: after.filter - before.filter, prioritize: after.prioritize - before.prioritize };
  };

  it('is active only next to the leader, although all are ready', async () => {
    await second.extender.ready();
    assert.deepEqual([await first.extender.isActive(), await second.extender.isActive()], [true, false]);
  });

  it('is asked about every pod, and for scores only about launchers', async () => {
    // The first prediction of a process takes longest. kube-scheduler requests no scores if only one node was
    // predicted in time.
    await callsFor({ name: 'first', ...LAUNCHER });
    assert.deepEqual(await callsFor({ name: 'ordinary', ...ORDINARY }), { filter: 1, prioritize: 0 });
    assert.deepEqual(await callsFor({ name: 'launcher', ...LAUNCHER }), { filter: 1, prioritize: 1 });
  });

  it('becomes active when its kube-scheduler takes over, and is then asked', async () => {
    await first.scheduler.stop();
    await until('the extender of the second to be active', () => second.extender.isActive());
    await until('the first to be passive', async () => !(await first.extender.isActive()));
    await stage.addPod({ name: 'after-takeover', ...LAUNCHER });
    await stage.bound('after-takeover');
    assert.ok((await second.extender.metric('plumbline_extender_calls_total', { verb: 'filter' })) > 0);
  });

  it('blocks no pod while it is down: ordinary pods and launchers are placed unchecked', async () => {
    await second.extender.stop('SIGKILL');
    for (const pod of [
      { name: 'ordinary-alone', ...ORDINARY },
      { name: 'launcher-alone', ...LAUNCHER },
    ]) {
      await stage.addPod(pod);
      await stage.bound(pod.name);
    }
  });
});
