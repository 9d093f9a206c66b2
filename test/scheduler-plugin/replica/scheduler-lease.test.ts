import assert from 'node:assert/strict';
import { SchedulerLeaseReplica } from '../../../scheduler-plugin/replica/scheduler-lease.ts';
import { createApi } from '../../kube/scripted-api-stand-in.ts';
import { silent } from '../../support/logger.ts';
import { turns } from '../../support/virtual-clock.ts';

const LEASE = 'plumbline-system/plumbline-scheduler';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';

/** A replica in the pod `pod-1`, whose Lease is watched and whose catch-ups end when the test says so. */
function startReplica(signal: AbortSignal) {
  const api = createApi();
  let [version, clock, begun] = [1, 0, 0];
  let finish: ((error?: Error) => void) | undefined;
  const said: string[] = [];
  const replica = new SchedulerLeaseReplica({
    client: api.client,
    lease: LEASE,
    hostName: 'pod-1',
    catchUp: () => {
      begun++;
      return new Promise<void>((resolve, reject) => {
        finish = (error) => (error === undefined ? resolve() : reject(error));
      });
    },
    log: silent,
    nowSeconds: () => clock,
  });
  replica.on('active', () => void said.push('active'));
  const ended = replica.run(signal);
  const scene = {
    replica,
    said,
    /** Catch-ups that have begun. */
    catchUps: () => begun,
    at: (seconds: number) => {
      clock = seconds;
    },
    /** The Lease is renewed, taken or given up (''). */
    async lease(holderIdentity: string | null | undefined) {
      const metadata = { name: 'plumbline-scheduler', namespace: 'plumbline-system', resourceVersion: `${++version}` };
      const renewTime = `2026-01-01T00:00:${version}.000000Z`;
      const object = { metadata, spec: { holderIdentity, leaseDurationSeconds: 8, renewTime } };
      api.push(LEASES, version === 2 ? 'ADDED' : 'MODIFIED', object);
      await turns();
    },
    /** Ends the catch-up that is in progress. */
    async finish(error?: Error) {
      finish?.(error);
      await turns();
    },
  };
  return { scene, ended };
}

async function withReplica(use: (scene: ReturnType<typeof startReplica>['scene']) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const { scene, ended } = startReplica(stop.signal);
  await turns();
  await use(scene);
  stop.abort();
  await ended;
}

describe('an extender in the pod of a kube-scheduler', () => {
  it('writes from when the Lease names its pod and the pods are read until the Lease names another pod', () =>
    withReplica(async ({ replica, lease, finish, said, catchUps }) => {
      assert.deepEqual([replica.problem, replica.isActive(), replica.mayAnswer()], [undefined, false, false]);
      await lease('pod-1_1c9e');
      assert.deepEqual([catchUps(), replica.isActive()], [1, false]);
      await finish();
      assert.deepEqual([replica.isActive(), replica.mayAnswer()], [true, true]);
      await lease('pod-1_1c9e');
      assert.equal(catchUps(), 1, 'a renewal is not a new leadership');
      await lease('pod-2_77aa');
      assert.deepEqual([replica.isActive(), replica.mayAnswer(), said.join()], [false, false, 'active']);
    }));

  it('answers the first call before it has seen the Lease, and writes only afterwards', () =>
    withReplica(async ({ replica, lease, finish, said, catchUps }) => {
      const call = replica.called();
      assert.equal(replica.mayAnswer(), false);
      await finish();
      await call;
      assert.deepEqual([replica.mayAnswer(), replica.isActive(), said.join()], [true, false, '']);
      await lease('pod-1_1c9e');
      assert.equal(catchUps(), 2, 'another replica may have bound pods since');
      await finish();
      assert.deepEqual([replica.isActive(), said.join()], [true, 'active']);
    }));

  it('answers after a catch-up during which it has seen a Lease without a holder', () =>
    withReplica(async ({ replica, lease, finish, catchUps }) => {
      const call = replica.called();
      for (const holder of ['', null, undefined]) await lease(holder);
      await finish();
      await call;
      assert.deepEqual([replica.mayAnswer(), replica.isActive(), catchUps()], [true, false, 1]);
    }));

  it('reads the pods again after a restart of its kube-scheduler', () =>
    withReplica(async ({ replica, lease, finish, catchUps }) => {
      await lease('pod-1_1c9e');
      await finish();
      await lease('');
      assert.equal(replica.isActive(), false);
      await lease('pod-1_5d02');
      await finish();
      assert.deepEqual([replica.isActive(), catchUps()], [true, 2]);
    }));

  it('does not write while the Lease is not renewed', () =>
    withReplica(async ({ replica, lease, finish, at }) => {
      await lease('pod-1_1c9e');
      await finish();
      at(7.9);
      assert.equal(replica.isActive(), true);
      at(8.1);
      assert.equal(replica.isActive(), false);
      await lease('pod-1_1c9e');
      assert.equal(replica.isActive(), true);
    }));

  it('gives no verdict while the pods cannot be read, and retries at the next call', () =>
    withReplica(async ({ replica, lease, finish, catchUps }) => {
      await lease('pod-1_1c9e');
      await finish(new Error('the API server is down'));
      assert.deepEqual([replica.mayAnswer(), replica.isActive()], [false, false]);
      const call = replica.called();
      await finish();
      await call;
      assert.deepEqual([replica.mayAnswer(), replica.isActive(), catchUps()], [true, true, 2]);
    }));

  it('does not count a catch-up that began under an earlier leadership', () =>
    withReplica(async ({ replica, lease, finish }) => {
      await lease('pod-1_1c9e');
      await lease('pod-2_77aa');
      await finish();
      assert.deepEqual([replica.mayAnswer(), replica.isActive()], [false, false]);
    }));
});
