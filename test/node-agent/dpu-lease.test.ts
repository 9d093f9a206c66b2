import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { nextRecord } from '../../model/lease/dpu-run.ts';
import { DPU_LEASE_HOLDER } from '../../model/names.ts';
import { DpuLease, ovsProbe, readDpuRun } from '../../node-agent/dpu-lease/dpu.ts';
import { maintainDpuLease, releaseDpuLease } from '../../node-agent/dpu-lease/dpu-host.ts';
import { bootId } from '../../node-agent/processes/proc.ts';
import { createFakeApi, type FakeApi } from './api-stand-in.ts';
import {
  messagesOf,
  recordingLogger,
  startStandIn,
  tempDirectories,
  testMetrics,
  turns,
  useDuties,
  useVirtualClock,
  valuesOf,
} from './support.ts';

const LEASE = { namespace: 'ns', name: 'dpu' };
const TIMING = { renewInterval: 10, duration: 40 };

let logged: ReturnType<typeof recordingLogger>;
let metrics: ReturnType<typeof testMetrics>;

/** Virtual time, a log and metrics for the duties of a suite. */
function setUp() {
  const start = useDuties();
  const clock = useVirtualClock();
  beforeEach(() => {
    logged = recordingLogger();
    metrics = testMetrics();
  });
  return { start, clock };
}

/** The duty of a DPU that is healthy and on which nothing is known to run. */
const dpuLease = (client: object, more: Partial<ConstructorParameters<typeof DpuLease>[0]> = {}) =>
  new DpuLease({
    client: client as KubeClient,
    lease: LEASE,
    timing: TIMING,
    log: logged.log,
    metrics,
    probe: async () => undefined,
    readRun: () => undefined,
    wallClock: () => Date.UTC(2026, 0, 1, 0, 1),
    ...more,
  });

describe('the renewals of a DPU, round by round', () => {
  const { start, clock } = setUp();
  let unwell: string | undefined;
  let failure: Error | undefined;
  let patched: string[];
  let reads: number;

  beforeEach(async () => {
    [unwell, failure, patched, reads] = [undefined, undefined, [], 0];
    const get = async () => {
      reads++;
      if (failure !== undefined) throw failure;
      return { metadata: { name: 'dpu' }, spec: { renewTime: '2026-01-01T00:01:05.000000Z' } };
    };
    const patch = async (_path: string, _type: string, body: { spec: { renewTime: string } }) => {
      if (failure !== undefined) throw failure;
      assert.deepEqual(body, { spec: { renewTime: body.spec.renewTime } }, 'it writes nothing but the time');
      patched.push(body.spec.renewTime);
      return { metadata: { name: 'dpu' } };
    };
    start(dpuLease({ get, patch }, { probe: async () => unwell }));
    await turns();
  });

  it('renews at each interval, logs it once, and continues from the time in the Lease', async () => {
    assert.equal(patched.length, 1);
    await clock.pass(9.9);
    assert.equal(patched.length, 1);
    await clock.pass(0.1);
    await clock.pass(10);
    assert.equal(patched.length, 3);
    assert.equal(reads, 1, 'the Lease is read once');
    assert.ok((patched[0] ?? '') > '2026-01-01T00:01:05', patched[0]);
    assert.deepEqual([...patched].sort(), patched);
    assert.deepEqual(messagesOf(logged), ['30 renewing the DPU lease']);
    assert.deepEqual(await valuesOf(metrics.dpuRenewals), { renewed: 3 });
  });

  it('stops renewing while the DPU is unhealthy, with the reason in the log', async () => {
    unwell = 'no answer';
    await clock.pass(30, 10);
    unwell = undefined;
    await clock.pass(10);
    assert.deepEqual(messagesOf(logged)[1], '40 renewing the DPU lease failed');
    assert.equal(logged.lines[1]?.['reason'], 'not renewed because the DPU is not healthy: no answer');
    assert.equal(patched.length, 2);
    assert.deepEqual(await valuesOf(metrics.dpuRenewals), { renewed: 2, withheld: 3 });
  });

  it('logs a missing Lease and any other failure with separate messages', async () => {
    failure = new KubeError(404, 'NotFound', 'no lease');
    await clock.pass(20, 10);
    failure = new KubeError(403, 'Forbidden', 'not yours');
    await clock.pass(10);
    const [, missing = '', other = '', ...more] = logged.lines.map(({ reason }) => String(reason));
    assert.deepEqual(more, []);
    assert.match(missing, /^the lease does not exist yet; the agent on the host creates it/);
    assert.match(other, /not yours/);
    assert.deepEqual(await valuesOf(metrics.dpuRenewals), { renewed: 1, failed: 3 });
  });
});

describe('the record of the DPU’s runs in its Lease', () => {
  const { start, clock } = setUp();
  const RUN = { bootId: 'a', pid: 1, start: 100 };
  /** The Lease in the API server, and what runs on the DPU. */
  let annotations: Record<string, string | null>;
  let run: typeof RUN;
  let ageSeconds: number;
  let refused: boolean;

  beforeEach(() => {
    [annotations, run, ageSeconds, refused] = [{}, RUN, 0, false];
  });

  const agent = () => {
    const get = async () => ({ metadata: { name: 'dpu', annotations: { ...annotations } }, spec: {} });
    const patch = async (_path: string, _type: string, body: { metadata?: { annotations: typeof annotations } }) => {
      if (refused && body.metadata) throw new KubeError(403, 'Forbidden', 'a DPU may change only renewTime');
      annotations = { ...annotations, ...body.metadata?.annotations };
      return get();
    };
    start(dpuLease({ get, patch }, { readRun: () => ({ run, ageSeconds }) }));
    return turns();
  };
  const record = () => JSON.parse(annotations['plumbline.dev/dpu-run'] ?? 'null') as unknown;
  const warnings = () => messagesOf(logged).filter((message) => message.startsWith('40'));

  it('is written with the first renewal, and has a restart when another run is seen, also by the next agent', async () => {
    await agent();
    assert.deepEqual(record(), RUN);
    await clock.pass(10);
    const next = { ...RUN, pid: 2, start: 900 };
    [run, ageSeconds] = [next, 7];
    await clock.pass(10);
    const restart = { previous: RUN, at: '2026-01-01T00:00:53Z' };
    assert.deepEqual(record(), { ...next, restart });
    await clock.pass(10);
    assert.deepEqual(record(), { ...next, restart }, 'later renewals keep it');
    assert.deepEqual(warnings(), ['40 the DPU has restarted']);
    [run, ageSeconds] = [{ ...next, bootId: 'b' }, 0];
    await agent();
    assert.deepEqual(record(), { ...run, restart: { previous: next, at: '2026-01-01T00:01:00Z' } });
  });

  it('has no restart after an administrator has removed it', async () => {
    await agent();
    run = { ...RUN, pid: 2 };
    await clock.pass(10);
    annotations = {};
    await clock.pass(20, 10);
    assert.deepEqual(record(), run);
  });

  it('is left out while the API server refuses it: the renewals continue, and one line says so', async () => {
    refused = true;
    await agent();
    await clock.pass(10);
    assert.equal(record(), null);
    assert.deepEqual(warnings(), ['40 DPU restarts not recorded']);
    assert.equal(messagesOf(logged).filter((message) => message === '30 renewing the DPU lease').length, 1);
    refused = false;
    await clock.pass(10);
    assert.deepEqual(record(), RUN);
  });
});

describe('what runs on a DPU', () => {
  const directory = tempDirectories();

  it('is the process of the pidfile with its start, which differs for the next one', async () => {
    const rundir = directory();
    const pidfile = join(rundir, 'ovs-vswitchd.pid');
    assert.equal(readDpuRun(rundir), undefined);
    const first = await startStandIn('ovs-vswitchd', 1, pidfile);
    const before = readDpuRun(rundir);
    assert.deepEqual([before?.run.pid, before?.run.bootId], [first.pid, bootId()]);
    assert.deepEqual(readDpuRun(rundir)?.run, before?.run);
    assert.ok(before !== undefined && before.ageSeconds >= 0 && before.ageSeconds < 60, `${before?.ageSeconds}`);
    await first.stop();
    const second = await startStandIn('ovs-vswitchd', 1, pidfile);
    assert.notEqual(nextRecord(before?.run, readDpuRun(rundir)!.run, ''), undefined);
    await second.stop();
  });
});

/** The socket on which a daemon of Open vSwitch answers, here with empty answers. If `hung`, it never answers. */
function startAnswering(path: string, hung = false) {
  rmSync(path, { force: true });
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      const { id } = JSON.parse(chunk.toString()) as { id: number };
      if (!hung) socket.write(JSON.stringify({ id, result: {}, error: null }));
    });
  });
  return server.listen(path).unref();
}

describe('the health of a DPU’s Open vSwitch', () => {
  const temp = tempDirectories();
  const stop = new AbortController();

  it('requires that both daemons of Open vSwitch run and answer', async () => {
    const rundir = temp();
    const probe = ovsProbe(rundir, 0.3);
    const vswitchd = await startStandIn('ovs-vswitchd', 0, join(rundir, 'ovs-vswitchd.pid'));
    assert.match((await probe(stop.signal)) ?? '', /ovsdb-server.pid/);
    const ovsdb = await startStandIn('ovsdb-server', 0, join(rundir, 'ovsdb-server.pid'));
    assert.match((await probe(stop.signal)) ?? '', /ovsdb-server does not answer: .*db\.sock.*ENOENT/);
    const hung = startAnswering(join(rundir, 'db.sock'), true);
    const control = startAnswering(join(rundir, `ovs-vswitchd.${vswitchd.pid}.ctl`));
    assert.equal(
      await probe(stop.signal),
      `ovsdb-server does not answer: ${rundir}/db.sock: no answer to echo in 0.3 s`,
    );
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
});

const NODE = 'worker-1';
const lease = { namespace: 'ovn-kubernetes', name: `ovn-dpu-${NODE}` };
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${lease.namespace}/leases/${lease.name}`;

const RENEWED = '2026-01-01T00:00:00.000000Z';

describe('the host’s side of a DPU’s Lease, round by round', () => {
  const { start, clock } = setUp();
  let api: FakeApi;
  let reads: number;

  beforeEach(() => {
    api = createFakeApi(NODE);
    reads = 0;
    const { get } = api.client;
    api.client.get = (path, ...more) => {
      if (path === PATH) reads++;
      return get(path, ...more);
    };
  });

  const leaseOf = (holderIdentity: string) =>
    void api.objects.set(PATH, {
      metadata: { name: lease.name },
      spec: { holderIdentity, leaseDurationSeconds: 40, renewTime: RENEWED },
    });
  const specNow = () => (api.objects.get(PATH) as { spec: object }).spec;
  const refuse = (error: KubeError) => {
    api.client.patch = () => Promise.reject(error);
  };
  const release = async () => {
    start({ run: (signal) => releaseDpuLease({ client: api.client, lease, log: logged.log }, signal) });
    await turns();
  };
  const tend = async () => {
    const deps = { client: api.client, nodeName: NODE, lease, timing: TIMING, log: logged.log };
    start({ run: (signal) => maintainDpuLease(deps, signal) });
    await turns();
  };

  it('release: looks once a minute, also while there is none', async () => {
    await release();
    assert.equal(reads, 1);
    await clock.pass(59.999);
    assert.equal(reads, 1);
    await clock.pass(0.001);
    assert.equal(reads, 2);
    leaseOf('someone');
    await clock.pass(60);
    assert.deepEqual(messagesOf(logged), ['30 DPU lease released; health check off']);
    assert.equal(logged.lines[0]?.['lease'], `${lease.namespace}/${lease.name}`);
    await clock.pass(60);
    assert.equal(reads, 4);
    assert.deepEqual(api.writes, [`PATCH ${PATH}`], 'released once');
    assert.deepEqual(specNow(), { holderIdentity: '', leaseDurationSeconds: 40, renewTime: RENEWED });
  });

  it('release: tries again five seconds after a failure, which is logged once, and its end', async () => {
    leaseOf('someone');
    const { patch } = api.client;
    refuse(new KubeError(500, 'InternalError', 'no'));
    await release();
    await clock.pass(4.999);
    assert.equal(reads, 1);
    await clock.pass(0.001);
    assert.equal(reads, 2);
    const FAILED = '40 releasing the DPU lease failed; retrying';
    assert.deepEqual(messagesOf(logged), [FAILED]);
    api.client.patch = patch;
    await clock.pass(5);
    assert.deepEqual(messagesOf(logged), [FAILED, '30 DPU lease released; health check off', '30 recovered']);
  });

  it('creates it: duration, holder, owned by the node, never renewed', async () => {
    await tend();
    const { metadata, spec } = api.objects.get(PATH) as { metadata: { ownerReferences: unknown[] }; spec: object };
    assert.deepEqual(spec, { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40 });
    const node = { apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'node-uid-1' };
    assert.deepEqual(metadata.ownerReferences, [{ ...node, controller: true, blockOwnerDeletion: false }]);
    assert.deepEqual(messagesOf(logged), ['30 DPU lease created; waiting for the DPU to renew it']);
    const { lease: named, durationSeconds } = logged.lines[0] ?? {};
    assert.deepEqual([named, durationSeconds], [`${lease.namespace}/${lease.name}`, 40]);
    await clock.pass(100);
    assert.equal(api.writes.length, 1, 'and leaves it alone');
  });

  it('care: looks in each renewal interval, repairs only what is wrong and keeps the DPU’s renewal', async () => {
    await tend();
    await clock.pass(9.999);
    assert.equal(reads, 1);
    await clock.pass(0.001);
    assert.equal(reads, 2);
    leaseOf('someone');
    await clock.pass(10);
    assert.deepEqual(specNow(), { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40, renewTime: RENEWED });
    assert.deepEqual(messagesOf(logged).slice(1), ['40 DPU lease repaired']);
    const { lease: named, reasons } = logged.lines[1] ?? {};
    assert.deepEqual([named, reasons], [`${lease.namespace}/${lease.name}`, ['no-owner', 'holder']]);
    await clock.pass(10);
    assert.equal(api.writes.length, 2, 'created and repaired');
  });

  const failures: [what: string, error: KubeError, logged: string[]][] = [
    ['another client wrote it first', new KubeError(409, 'Conflict', 'changed'), []],
    ['another client created it first', new KubeError(409, 'AlreadyExists', 'exists'), []],
    ['any other failure', new KubeError(500, 'Error', 'no'), ['40 maintaining the DPU lease failed; retrying']],
  ];
  for (const [what, error, expected] of failures) {
    it(`care: looks again after a failure, with a log line only for a defect: ${what}`, async () => {
      leaseOf('someone');
      refuse(error);
      await tend();
      await clock.pass(10);
      assert.deepEqual([reads, messagesOf(logged)], [2, expected]);
    });
  }
});
