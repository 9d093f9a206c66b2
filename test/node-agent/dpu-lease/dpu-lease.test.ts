import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { KubeError } from '../../../kube/client.ts';
import { DPU_LEASE_HOLDER, DPU_LEASE_NAMESPACE } from '../../../model/names.ts';
import { createDpuLease, createOvsProbe } from '../../../node-agent/dpu-lease/dpu.ts';
import { createDpuHostLease, createLeaseRelease } from '../../../node-agent/dpu-lease/dpu-host.ts';
import { createRenewals } from '../../../node-agent/kube-objects/lease.ts';
import { createHeartbeat } from '../../../node-agent/report/heartbeat.ts';
import { createFakeApi, type FakeApi } from '../api-stand-in.ts';
import { eventually, recordingLogger, startStandIn, tempDirectories, testMetrics } from '../support.ts';
import { startAnswering } from './answering.ts';

const NODE = 'worker-1';
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${DPU_LEASE_NAMESPACE}/leases/ovn-dpu-${NODE}`;
const lease = { namespace: DPU_LEASE_NAMESPACE, name: `ovn-dpu-${NODE}` };
/** Short, so that a test covers many rounds. The agent's own configuration takes whole seconds. */
const timing = { renewInterval: 0.01, duration: 40 };

interface LeaseObject {
  metadata: { ownerReferences: { uid: string; kind: string; controller: boolean; blockOwnerDeletion: boolean }[] };
  spec: { holderIdentity: string; leaseDurationSeconds: number; renewTime?: string };
}

let api: FakeApi;
let stop: AbortController;
let logged: ReturnType<typeof recordingLogger>;
const current = () => api.objects.get(PATH) as unknown as LeaseObject | undefined;

function setUp(): void {
  beforeEach(() => {
    api = createFakeApi(NODE);
    stop = new AbortController();
    logged = recordingLogger();
  });
  afterEach(() => stop.abort());
}
const runHost = () =>
  void createDpuHostLease({ client: api.client, nodeName: NODE, lease, timing, log: logged.log }).run(stop.signal);
const rounds = () => new Promise((resolve) => setTimeout(resolve, 100));

describe('DPU Lease, on the host', () => {
  setUp();

  it('creates it: duration, holder, owned by the node, never renewed', async () => {
    runHost();
    await eventually(() => current() !== undefined, 'the lease is there');
    assert.deepEqual(current()?.spec, { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40 });
    assert.deepEqual(current()?.metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'node-uid-1', controller: true, blockOwnerDeletion: false },
    ]);
    await rounds();
    assert.deepEqual(api.writes.length, 1, 'and leaves it alone');
  });

  const wrongs: [string, (lease: LeaseObject) => void][] = [
    ['a foreign holder', ({ spec }) => Object.assign(spec, { holderIdentity: 'another' })],
    ['another duration', ({ spec }) => Object.assign(spec, { leaseDurationSeconds: 10 })],
    [
      'the uid of a node that was created again',
      ({ metadata }) => Object.assign(metadata.ownerReferences[0]!, { uid: 'old' }),
    ],
    ['two owners', ({ metadata }) => metadata.ownerReferences.push({ ...metadata.ownerReferences[0]!, uid: 'old' })],
    ['blockOwnerDeletion', ({ metadata }) => Object.assign(metadata.ownerReferences[0]!, { blockOwnerDeletion: true })],
    ['no owner', ({ metadata }) => metadata.ownerReferences.splice(0)],
  ];
  for (const [name, spoil] of wrongs) {
    it(`corrects ${name} and keeps the DPU’s renewal`, async () => {
      runHost();
      await eventually(() => current() !== undefined, 'the lease is there');
      const renewTime = '2026-01-01T00:00:00.000000Z';
      current()!.spec.renewTime = renewTime;
      spoil(current()!);
      await eventually(() => logged.said('DPU lease repaired'), 'the repair is logged');
      const { metadata, spec } = current()!;
      assert.deepEqual(spec, { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40, renewTime });
      assert.deepEqual(
        metadata.ownerReferences.map(({ uid, blockOwnerDeletion }) => [uid, blockOwnerDeletion]),
        [['node-uid-1', false]],
      );
    });
  }

  it('logs nothing while the Lease needs no change', async () => {
    let reads = 0;
    const { get } = api.client;
    api.client.get = (path, ...more) => {
      if (path === PATH) reads++;
      return get(path, ...more);
    };
    runHost();
    await eventually(() => reads > 3, 'the lease is read again');
    assert.deepEqual(
      logged.lines.map(({ msg }) => msg),
      ['DPU lease created; waiting for the DPU to renew it'],
    );
  });

  it('does not renew it after a restart of the host', async () => {
    runHost();
    await eventually(() => current() !== undefined, 'the lease is there');
    current()!.spec.renewTime = '2026-01-01T00:00:00.000000Z';
    stop.abort();
    stop = new AbortController();
    runHost();
    await rounds();
    assert.equal(current()?.spec.renewTime, '2026-01-01T00:00:00.000000Z');
  });

  it('logs once that the API server is down, and continues when it is back', async () => {
    api.failing = true;
    runHost();
    await rounds();
    assert.equal(logged.lines.length, 1);
    api.failing = false;
    await eventually(() => current() !== undefined, 'the lease is there');
  });
});

describe('DPU Lease, with the health check off', () => {
  setUp();
  const runRelease = () => void createLeaseRelease({ client: api.client, lease, log: logged.log }).run(stop.signal);

  it('releases the Lease of an earlier run once, and manages it again when the check is on', async () => {
    runHost();
    await eventually(() => current() !== undefined, 'the lease is there');
    current()!.spec.renewTime = '2026-01-01T00:00:00.000000Z';
    stop.abort();
    stop = new AbortController();
    runRelease();
    await eventually(() => current()?.spec.holderIdentity === '', 'released');
    await rounds();
    assert.equal(api.writes.length, 2, 'made and released');
    assert.equal(current()?.spec.renewTime, '2026-01-01T00:00:00.000000Z');
    stop.abort();
    stop = new AbortController();
    runHost();
    await eventually(() => current()?.spec.holderIdentity === DPU_LEASE_HOLDER, 'taken up');
  });

  it('creates no Lease without a Node, and logs once that the API server is down', async () => {
    runRelease();
    await rounds();
    assert.deepEqual([current(), api.writes.length], [undefined, 0]);
    stop.abort();
    stop = new AbortController();
    api.failing = true;
    runRelease();
    await rounds();
    assert.equal(logged.lines.length, 1);
  });
});

describe('DPU Lease, on the DPU', () => {
  setUp();
  let unwell: string | undefined;
  let clock: number;
  const create = () =>
    void api.objects.set(PATH, {
      metadata: { name: lease.name },
      spec: { holderIdentity: 'x', leaseDurationSeconds: 40 },
    });
  const run = () =>
    void createDpuLease({
      client: api.client,
      lease,
      timing,
      probe: async () => unwell,
      log: logged.log,
      metrics: testMetrics(),
      wallClock: () => clock,
    }).run(stop.signal);
  beforeEach(() => {
    unwell = undefined;
    clock = 1_700_000_000_000;
  });

  it('renews at each interval with a later time, whatever the clock shows', async () => {
    create();
    run();
    const seen: string[] = [];
    for (let i = 0; i < 5; i++) {
      await eventually(() => (current()?.spec.renewTime ?? '') > (seen.at(-1) ?? ''), 'renewed');
      seen.push(current()!.spec.renewTime!);
      clock += i % 2 === 0 ? -600_000 : 600_000;
    }
    assert.match(seen[0]!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.deepEqual(current()?.spec.holderIdentity, 'x', 'writes nothing but the time');
  });

  it('continues after an earlier renewal with a time in the future', async () => {
    create();
    current()!.spec.renewTime = '2030-01-01T00:00:00.000000Z';
    run();
    await eventually(() => current()!.spec.renewTime! > '2030-01-01T00:00:00.000000Z', 'renewed');
  });

  it('never creates the Lease, names the component that does, and renews it once it exists', async () => {
    run();
    await rounds();
    assert.equal(current(), undefined);
    assert.ok(logged.lines.some(({ reason }) => /--mode dpu-host/.test(String(reason))));
    create();
    await eventually(() => current()?.spec.renewTime !== undefined, 'renewed');
  });

  it('stops renewing while the probe fails, and logs the reason', async () => {
    create();
    run();
    await eventually(() => current()?.spec.renewTime !== undefined, 'renewed');
    unwell = 'ovs-vswitchd is gone';
    await eventually(() => logged.said('renewing the DPU lease failed'), 'noticed');
    const { renewTime } = current()!.spec;
    await rounds();
    assert.equal(current()!.spec.renewTime, renewTime);
    unwell = undefined;
    await eventually(() => current()!.spec.renewTime !== renewTime, 'renewed again');
  });
});

describe('DPU Lease, other parts', () => {
  setUp();
  const temp = tempDirectories();

  it('the probe requires that both daemons of Open vSwitch run and answer', async () => {
    const rundir = temp();
    const probe = createOvsProbe(rundir, 0.3);
    const vswitchd = await startStandIn('ovs-vswitchd', 0, join(rundir, 'ovs-vswitchd.pid'));
    assert.match((await probe(stop.signal)) ?? '', /ovsdb-server.pid/);
    const ovsdb = await startStandIn('ovsdb-server', 0, join(rundir, 'ovsdb-server.pid'));
    assert.match((await probe(stop.signal)) ?? '', /ovsdb-server does not answer on .*db\.sock.*ENOENT/);
    const hung = startAnswering(join(rundir, 'db.sock'), { hung: true });
    const control = startAnswering(join(rundir, `ovs-vswitchd.${vswitchd.pid}.ctl`));
    assert.equal(await probe(stop.signal), `ovsdb-server does not answer on ${rundir}/db.sock: no answer in 0.3 s`);
    hung.close();
    const database = startAnswering(join(rundir, 'db.sock'));
    assert.equal(await probe(stop.signal), undefined);
    assert.equal(getEventListeners(stop.signal, 'abort').length, 0, 'a probe leaves no listener behind');
    await vswitchd.stop();
    assert.match((await probe(stop.signal)) ?? '', /that process does not exist/);
    await ovsdb.stop();
    control.close();
    database.close();
  });

  it('renew times are in microseconds and strictly increase', () => {
    const times = createRenewals(() => Date.UTC(2026, 0, 1));
    times.seen('2025-12-31T23:59:59.000000Z');
    assert.deepEqual([times.next(), times.next()], ['2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000001Z']);
    times.seen('2026-01-01T00:00:05.123456Z');
    assert.equal(times.next(), '2026-01-01T00:00:05.123457Z');
    times.seen('garbage');
    assert.equal(times.next(), '2026-01-01T00:00:05.123458Z');
  });

  it('the agent’s own heartbeat is created with the Node as owner, then renewed', async () => {
    const heartbeat = createHeartbeat({
      client: api.client,
      nodeName: NODE,
      log: logged.log,
      metrics: testMetrics(),
      wallClock: Date.now,
    });
    const done = heartbeat.run(stop.signal);
    const path = `/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases/plumbline-agent-${NODE}`;
    await eventually(() => api.objects.has(path), 'the lease is there');
    const { metadata, spec } = api.objects.get(path) as unknown as LeaseObject;
    assert.equal(metadata.ownerReferences[0]?.uid, 'node-uid-1');
    assert.equal(spec.leaseDurationSeconds, 40);
    assert.ok(spec.renewTime);
    stop.abort();
    await done;
  });

  it('the agent’s own heartbeat is not created after a renewal that failed for another reason than a missing Lease', async () => {
    api.client.patch = () => Promise.reject(new KubeError(500, 'InternalError', 'no answer for the test'));
    const { log } = logged;
    const heartbeat = createHeartbeat({
      client: api.client,
      nodeName: NODE,
      log,
      metrics: testMetrics(),
      wallClock: Date.now,
    });
    const done = heartbeat.run(stop.signal);
    try {
      await eventually(() => logged.lines.length > 0 || api.writes.length > 0, 'the renewal failed');
      assert.deepEqual(api.writes, []);
      assert.ok(logged.said('renewing the agent’s Lease failed; retrying'));
    } finally {
      stop.abort();
      await done;
    }
  });
});
