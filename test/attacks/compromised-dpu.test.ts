import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import { until } from '../support/until.ts';
import { longestDelay, MERGE, processorMs, type Stage, startStage } from './stage.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases';

/** The account of a DPU, and any account that can write its Lease. */
describe('attacks by a compromised DPU', function () {
  this.timeout(300_000);
  let stage: Stage;
  let lease: string;
  let dpu: KubeClient;
  before(async () => {
    stage = await startStage();
    lease = `${LEASES}/ovn-dpu-${stage.rogue}`;
    dpu = await stage.as({ kind: 'dpu', node: stage.rogue });
    await stage.admin.patch(`/api/v1/nodes/${stage.rogue}`, MERGE, {
      metadata: { labels: { 'k8s.ovn.org/dpu-host': '' } },
    });
    const spec = { holderIdentity: 'ovnkube-dpu-node', leaseDurationSeconds: 3, renewTime: time() };
    const metadata = { name: `ovn-dpu-${stage.rogue}` };
    await stage.admin
      .create(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec })
      .catch(() => stage.admin.patch(lease, MERGE, { spec }));
  });
  after(() => stage?.stop());

  const time = () => new Date().toISOString().replace('Z', '000Z');
  const renew = () => dpu.patch(lease, MERGE, { spec: { renewTime: time() } });
  const condition = async () => {
    const { status } = (await stage.admin.get(`/api/v1/nodes/${stage.rogue}`)) as {
      status: { conditions?: { type: string; status: string }[] };
    };
    return status.conditions?.find(({ type }) => type === 'plumbline.dev/DPUReady')?.status;
  };

  it('the DPU is alive while it renews, and dead when it stops', async () => {
    for (let i = 0; i < 3; i++) {
      await renew();
      await delay(500);
    }
    await until('the DPU to count as alive', async () => {
      await renew();
      return (await condition()) === 'True';
    });
    await until('the DPU to count as dead', async () => (await condition()) === 'False');
  });

  it('a longer duration, written while it is dead, revives nothing and causes no flood of requests', async () => {
    for (const leaseDurationSeconds of [600, 1_000_000, 2_147_483_647]) {
      await longestDelay(stage.extender);
      const before = processorMs(stage.extender);
      await stage.admin.patch(lease, MERGE, { spec: { leaseDurationSeconds } });
      await delay(2000);
      assert.equal(await condition(), 'False', `${leaseDurationSeconds} s`);
      const spent = processorMs(stage.extender) - before;
      // 334 requests per second would take most of it.
      assert.ok(spent < 1000, `${spent} ms of processor time in 2 s`);
      await stage.serve();
    }
    await stage.admin.patch(lease, MERGE, { spec: { leaseDurationSeconds: 3 } });
  });
});
