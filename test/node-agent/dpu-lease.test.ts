import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { mock } from 'node:test';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { nextRecord } from '../../model/lease/dpu-run.ts';
import { DPU_LEASE_HOLDER } from '../../model/names.ts';
import { DpuLease, ovsProbe } from '../../node-agent/dpu-lease/dpu.ts';
import { maintainDpuLease, releaseDpuLease } from '../../node-agent/dpu-lease/dpu-host.ts';
import { readDpuRun } from '../../node-agent/dpu-lease/run.ts';
import { bootId } from '../../node-agent/processes/proc.ts';
import { createFakeApi, type FakeApi } from './api-stand-in.ts';
import { recordingLogger, startStandIn, tempDirectories, testMetrics, turns, useDuties } from './support.ts';

describe('the renewals of a DPU, round by round', () => {
  const start = useDuties();
  let unwell: string | undefined;
  let failure: Error | undefined;
  let patched: string[];
  let reads: number;
  let probed: () => void;
  let logged: ReturnType<typeof recordingLogger>;
  let metrics: ReturnType<typeof testMetrics>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    unwell = undefined;
    failure = undefined;
    patched = [];
    reads = 0;
    probed = () => {};
    logged = recordingLogger();
    metrics = testMetrics();
    const client = {
      get: async () => {
        reads++;
        if (failure !== undefined) throw failure;
        return { metadata: { name: 'dpu' }, spec: { renewTime: '2026-01-01T00:00:05.000000Z' } };
      },
      patch: async (_path: string, _type: string, body: { spec: { renewTime: string } }) => {
        if (failure !== undefined) throw failure;
        assert.deepEqual(body, { spec: { renewTime: body.spec.renewTime } }, 'it writes nothing but the time');
        patched.push(body.spec.renewTime);
        return { metadata: { name: 'dpu' } };
      },
    } as unknown as KubeClient;
    const renewals = new DpuLease({
      client,
      lease: { namespace: 'ns', name: 'dpu' },
      timing: { renewInterval: 10, duration: 40 },
      probe: async () => {
        probed();
        return unwell;
      },
      readRun: () => undefined,
      log: logged.log,
      metrics,
      wallClock: () => Date.UTC(2026, 0, 1),
    });
    start(renewals);
  });
  afterEach(() => mock.timers.reset());

  /** Runs the next round. */
  const round = async (seconds = 10) => {
    mock.timers.tick(seconds * 1000);
    await turns();
  };
  const messages = () => logged.lines.map(({ level, reason, msg }) => `${level} ${msg}${reason ? `: ${reason}` : ''}`);
  const outcomes = async () =>
    Object.fromEntries((await metrics.dpuRenewals.get()).values.map(({ labels, value }) => [labels.outcome, value]));

  it('renews at each interval, logs it once, and continues from the time in the Lease', async () => {
    await turns();
    assert.equal(patched.length, 1);
    await round(9.9);
    assert.equal(patched.length, 1);
    await round(0.1);
    await round();
    assert.equal(patched.length, 3);
    assert.equal(reads, 1, 'the Lease is read once');
    assert.ok((patched[0] ?? '') > '2026-01-01T00:00:05', patched[0]);
    assert.deepEqual([...patched].sort(), patched);
    assert.deepEqual(messages(), ['30 renewing the DPU lease']);
    assert.deepEqual(await outcomes(), { renewed: 3 });
  });

  it('stops renewing while the DPU is unhealthy, with the reason in the log', async () => {
    await turns();
    unwell = 'no answer';
    for (let i = 0; i < 3; i++) await round();
    unwell = undefined;
    await round();
    assert.match(messages()[1] ?? '', /failed: not renewed because the DPU is not healthy: no answer/);
    assert.equal(patched.length, 2);
    assert.deepEqual(await outcomes(), { renewed: 2, withheld: 3 });
  });

  it('logs a missing Lease and any other failure with separate messages', async () => {
    failure = new KubeError(404, 'NotFound', 'no lease');
    await turns();
    await round();
    failure = new KubeError(403, 'Forbidden', 'not yours');
    await round();
    const problems = logged.lines.map(({ reason }) => String(reason));
    assert.equal(problems.length, 2);
    assert.match(problems[0] ?? '', /^the lease does not exist yet; the agent on the host creates it/);
    assert.match(problems[1] ?? '', /not yours/);
    assert.deepEqual(await outcomes(), { failed: 3 });
  });
});

describe('the record of the DPU’s runs in its Lease', () => {
  const start = useDuties();
  const RUN = { bootId: 'a', pid: 1, start: 100 };
  /** The Lease in the API server, and what runs on the DPU. */
  let annotations: Record<string, string | null>;
  let run: object;
  let ageSeconds: number;
  let refused: boolean;
  let logged: ReturnType<typeof recordingLogger>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    annotations = {};
    run = RUN;
    ageSeconds = 0;
    refused = false;
    logged = recordingLogger();
  });
  afterEach(() => mock.timers.reset());

  const agent = () => {
    const lease = () => ({ metadata: { name: 'dpu', annotations: { ...annotations } }, spec: {} });
    const client = {
      get: async () => lease(),
      patch: async (_path: string, _type: string, { metadata }: { metadata?: { annotations: typeof annotations } }) => {
        if (refused && metadata !== undefined) throw new KubeError(403, 'Forbidden', 'a DPU may change only renewTime');
        annotations = { ...annotations, ...metadata?.annotations };
        return lease();
      },
    } as unknown as KubeClient;
    start(
      new DpuLease({
        client,
        lease: { namespace: 'ns', name: 'dpu' },
        timing: { renewInterval: 10, duration: 40 },
        probe: async () => undefined,
        readRun: () => ({ run: run as typeof RUN, ageSeconds }),
        log: logged.log,
        metrics: testMetrics(),
        wallClock: () => Date.UTC(2026, 0, 1, 0, 1),
      }),
    );
    return turns();
  };
  const round = async () => {
    mock.timers.tick(10_000);
    await turns();
  };
  const record = () => JSON.parse(annotations['plumbline.dev/dpu-run'] ?? 'null') as unknown;
  const warnings = () => logged.lines.filter(({ level }) => level === 40).map(({ msg }) => msg);

  it('is written with the first renewal, and has a restart when another run is seen, also by the next agent', async () => {
    await agent();
    assert.deepEqual(record(), RUN);
    await round();
    const next = { ...RUN, pid: 2, start: 900 };
    [run, ageSeconds] = [next, 7];
    await round();
    const restart = { previous: RUN, at: '2026-01-01T00:00:53Z' };
    assert.deepEqual(record(), { ...next, restart });
    await round();
    assert.deepEqual(record(), { ...next, restart }, 'later renewals keep it');
    assert.deepEqual(warnings(), ['the DPU has restarted']);
    run = { ...next, bootId: 'b' };
    ageSeconds = 0;
    await agent();
    assert.deepEqual(record(), { ...run, restart: { previous: next, at: '2026-01-01T00:01:00Z' } });
  });

  it('has no restart after an administrator has removed it', async () => {
    await agent();
    run = { ...RUN, pid: 2 };
    await round();
    annotations = {};
    await round();
    await round();
    assert.deepEqual(record(), run);
  });

  it('is left out while the API server refuses it: the renewals continue, and one line says so', async () => {
    refused = true;
    await agent();
    await round();
    assert.equal(record(), null);
    assert.deepEqual(warnings(), ['DPU restarts not recorded']);
    assert.equal(logged.lines.filter(({ msg }) => msg === 'renewing the DPU lease').length, 1);
    refused = false;
    await round();
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
    socket.on('data', () => hung || socket.write('{"id":0,"result":{},"error":null}'));
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
    assert.match((await probe(stop.signal)) ?? '', /ovsdb-server does not answer on .*db\.sock.*ENOENT/);
    const hung = startAnswering(join(rundir, 'db.sock'), true);
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
});

const NODE = 'worker-1';
const lease = { namespace: 'ovn-kubernetes', name: `ovn-dpu-${NODE}` };
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${lease.namespace}/leases/${lease.name}`;

const RENEWED = '2026-01-01T00:00:00.000000Z';

describe('the host’s side of a DPU’s Lease, round by round', () => {
  const start = useDuties();
  let api: FakeApi;
  let reads: number;
  let logged: ReturnType<typeof recordingLogger>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    api = createFakeApi(NODE);
    reads = 0;
    const { get } = api.client;
    api.client.get = (path, ...more) => {
      if (path === PATH) reads++;
      return get(path, ...more);
    };
    logged = recordingLogger();
  });
  afterEach(() => mock.timers.reset());

  const pass = async (seconds: number) => {
    mock.timers.tick(seconds * 1000);
    await turns();
  };
  const leaseOf = (holderIdentity: string) =>
    void api.objects.set(PATH, {
      metadata: { name: lease.name },
      spec: { holderIdentity, leaseDurationSeconds: 40, renewTime: RENEWED },
    });
  const specNow = () => (api.objects.get(PATH) as { spec: object }).spec;
  const messages = () => logged.lines.map(({ level, msg }) => `${level} ${msg}`);
  const refuse = (error: KubeError) => {
    api.client.patch = () => Promise.reject(error);
  };
  const release = async () => {
    start({ run: (signal) => releaseDpuLease({ client: api.client, lease, log: logged.log }, signal) });
    await turns();
  };
  const tend = async () => {
    const timing = { renewInterval: 10, duration: 40 };
    const deps = { client: api.client, nodeName: NODE, lease, timing, log: logged.log };
    start({ run: (signal) => maintainDpuLease(deps, signal) });
    await turns();
  };

  it('release: looks once a minute, also while there is none', async () => {
    await release();
    assert.equal(reads, 1);
    await pass(59.999);
    assert.equal(reads, 1);
    await pass(0.001);
    assert.equal(reads, 2);
    leaseOf('someone');
    await pass(60);
    assert.deepEqual(messages(), ['30 DPU lease released; health check off']);
    assert.equal(logged.lines[0]?.['lease'], `${lease.namespace}/${lease.name}`);
    await pass(60);
    assert.equal(reads, 4);
    assert.deepEqual(api.writes, [`PATCH ${PATH}`], 'released once');
    assert.deepEqual(specNow(), { holderIdentity: '', leaseDurationSeconds: 40, renewTime: RENEWED });
  });

  it('release: tries again five seconds after a failure, which is logged once, and its end', async () => {
    leaseOf('someone');
    const { patch } = api.client;
    refuse(new KubeError(500, 'InternalError', 'no'));
    await release();
    await pass(4.999);
    assert.equal(reads, 1);
    await pass(0.001);
    assert.equal(reads, 2);
    const FAILED = '40 releasing the DPU lease failed; retrying';
    assert.deepEqual(messages(), [FAILED]);
    api.client.patch = patch;
    await pass(5);
    assert.deepEqual(messages(), [FAILED, '30 DPU lease released; health check off', '30 recovered']);
  });

  it('creates it: duration, holder, owned by the node, never renewed', async () => {
    await tend();
    const { metadata, spec } = api.objects.get(PATH) as { metadata: { ownerReferences: unknown[] }; spec: object };
    assert.deepEqual(spec, { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40 });
    assert.deepEqual(metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Node', name: NODE, uid: 'node-uid-1', controller: true, blockOwnerDeletion: false },
    ]);
    await pass(100);
    assert.equal(api.writes.length, 1, 'and leaves it alone');
  });

  it('care: looks in each renewal interval, repairs only what is wrong and keeps the DPU’s renewal', async () => {
    await tend();
    assert.deepEqual(messages(), ['30 DPU lease created; waiting for the DPU to renew it']);
    assert.deepEqual(
      [logged.lines[0]?.['lease'], logged.lines[0]?.['durationSeconds']],
      [`${lease.namespace}/${lease.name}`, 40],
    );
    await pass(9.999);
    assert.equal(reads, 1);
    await pass(0.001);
    assert.equal(reads, 2);
    leaseOf('someone');
    await pass(10);
    assert.deepEqual(specNow(), { holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: 40, renewTime: RENEWED });
    assert.deepEqual(messages().slice(1), ['40 DPU lease repaired']);
    assert.equal(logged.lines[1]?.['lease'], `${lease.namespace}/${lease.name}`);
    assert.deepEqual(logged.lines[1]?.['reasons'], ['no-owner', 'holder']);
    await pass(10);
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
      await pass(10);
      assert.deepEqual([reads, messages()], [2, expected]);
    });
  }
});
