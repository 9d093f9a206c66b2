import assert from 'node:assert/strict';
import { createSchedulerLease } from '../../../webhook/cluster/scheduler-lease.ts';
import { scriptedLists, settle } from '../../kube/scripted-api-stand-in.ts';
import { silent } from '../../support/logger.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';

describe('the Lease of the scheduler', () => {
  let now: number;
  let running: AbortController;
  beforeEach(() => {
    now = 1000;
    running = new AbortController();
  });
  afterEach(() => running.abort());

  const lease = (holderIdentity?: string | null, renewTime = '2026-01-01T00:00:00.000000Z') => ({
    metadata: { name: 's', namespace: 'plumbline-system' },
    spec: { holderIdentity, renewTime },
  });
  const stage = async (items: ReturnType<typeof lease>[], name = 's', held: string[] = []) => {
    const lists = scriptedLists({ [LEASES]: items }, held);
    const scheduler = createSchedulerLease(name, { client: lists.client, log: silent, nowSeconds: () => now });
    void scheduler.run(running.signal);
    await settle();
    return { lists, scheduler };
  };

  it('gives no verdict until it is read', async () => {
    const { lists, scheduler } = await stage([], 's', [LEASES]);
    assert.equal(scheduler.away, undefined);
    await lists.release(LEASES);
    assert.equal(scheduler.away, 'no replica of it has ever led');
  });

  it('means that no replica leads if it has no holder', async () => {
    for (const holder of ['', null, undefined]) {
      const { scheduler } = await stage([lease(holder)]);
      assert.equal(scheduler.away, 'no replica of it leads');
    }
  });

  it('counts as renewed for 30 s after each renewal, by the clock of this process', async () => {
    const { lists, scheduler } = await stage([lease('x')]);
    now += 30;
    assert.equal(scheduler.away, undefined);
    now += 1;
    assert.equal(scheduler.away, 'its leader has not renewed its Lease for 31 s');
    await lists.send(LEASES, 'MODIFIED', lease('x'));
    assert.equal(scheduler.away, 'its leader has not renewed its Lease for 31 s', 'another field was written');
    await lists.send(LEASES, 'MODIFIED', lease('x', '2026-01-01T00:00:31.000000Z'));
    assert.equal(scheduler.away, undefined);
    await lists.send(LEASES, 'DELETED', lease('x'));
    assert.equal(scheduler.away, 'no replica of it has ever led');
  });

  it('is not watched if no scheduler is set', async () => {
    const { lists, scheduler } = await stage([lease('')], '');
    await scheduler.run(running.signal);
    assert.deepEqual(lists.listCalls, []);
    assert.equal(scheduler.away, undefined);
  });
});
