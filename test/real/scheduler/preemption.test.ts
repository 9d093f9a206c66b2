import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { type Replica, type Stage, startStage, topologyOf } from './stage.ts';

/** ADR 0022: no VM is evicted for a pod that would still not fit. */
describe('preemption by a real kube-scheduler', function () {
  onControlPlane(this);
  let stage: Stage;
  let replica: Replica;

  before(async () => {
    stage = await startStage();
    // 14 CPUs for pods; the Node has 64, so that kube-scheduler itself has room.
    await stage.addNodes([{ name: 'one', topology: topologyOf() }]);
    replica = await stage.startReplica();
    await stage.startScheduler();
    const priority = (name: string, value: number) => ({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name },
      value,
    });
    await stage.plane.create(priority('low', 10), priority('high', 1000));
    // Of shared CPUs, because it asks for a fraction.
    await stage.addPod({ name: 'victim', cpu: '40500m', devices: [], more: { priorityClassName: 'low' } });
    assert.equal(await stage.bound('victim'), 'one');
  });
  after(() => stage?.stop());

  for (const [what, cpu, calls] of [
    ['the extender alone refuses: no victim is looked for', '16', 0],
    ['kube-scheduler is short of CPUs, too: the extender says that the victim does not help', '30', 1],
  ] as const) {
    it(`if ${what}`, async () => {
      const called = () => replica.metric('plumbline_extender_calls_total', { verb: 'preempt' });
      const before = await called();
      const name = `asks-${cpu}`;
      await stage.addPod({ name, cpu, more: { priorityClassName: 'high' } });
      await until('it to be refused', async () => {
        const { conditions = [] } = (await stage.podOf(name)).status;
        return conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'False');
      });
      await delay(2000);
      assert.equal(Math.min(1, (await called()) - before), calls);
      assert.equal((await stage.podOf(name)).status.nominatedNodeName, undefined);
      assert.equal((await stage.podOf('victim')).metadata.deletionTimestamp, undefined);
      await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
    });
  }
});
