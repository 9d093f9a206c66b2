import assert from 'node:assert/strict';
import fc from 'fast-check';
import { KubeError } from '../../kube/client.ts';
import type { NodeTopology } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { applyMergePatch, createMergePatch } from '../../model/json.ts';
import { type NodeIdentity, readNode } from '../../node-agent/kube-objects/lease.ts';
import { AgentLease } from '../../node-agent/report/agent-lease.ts';
import { Report } from '../../node-agent/report/report.ts';
import { buildStatus, type ReportInputs } from '../../node-agent/report/status.ts';
import { TopologyStore } from '../../node-agent/report/topology-store.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { createFakeApi, type FakeApi } from './api-stand-in.ts';
import { inputs, knownView, runWith } from './report/inputs-fixture.ts';
import {
  eventually,
  messagesOf,
  recordingLogger,
  testMetrics,
  turns,
  useDuties,
  useVirtualClock,
  valuesOf,
} from './support.ts';

const NODE = 'worker-1';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const NAME = `plumbline-agent-${NODE}`;
const PATH = `/apis/plumbline.dev/v1alpha1/nodetopologies/${NODE}`;

/** With more CPUs than a test reserves. */
const LARGE = runWith({ description: { cells: [{ id: 0, cpus: '0-63' }], cores: ['0-63'] } });

let api: FakeApi;
let now: ReportInputs;
let builds: number;
let changed: () => void;
let logged: ReturnType<typeof recordingLogger>;
let metrics: ReturnType<typeof testMetrics>;

function setUp(): void {
  beforeEach(() => {
    api = createFakeApi(NODE);
    now = inputs;
    builds = 0;
    logged = recordingLogger();
    metrics = testMetrics();
  });
}

/** The duty, with `now` as what it reports. */
function createReport(): Report {
  const subscribe = (listener: () => void) => {
    changed = listener;
    return () => {};
  };
  const current = async () => {
    builds++;
    return now;
  };
  return new Report({ client: api.client, nodeName: NODE, inputs: current, subscribe, log: logged.log, metrics });
}
const published = () => api.objects.get(PATH) as unknown as NodeTopology | undefined;

describe('publishing the report', () => {
  setUp();
  const start = useDuties();
  const run = () => void start(createReport());
  const reserve = (cpus: string) => {
    now = { ...inputs, run: LARGE, view: { ...knownView, reserved: CpuSet.parse(cpus) } };
    changed();
  };
  /** A pass without a change. */
  const rebuilt = async () => {
    const before = builds;
    changed();
    await eventually(() => builds > before, 'another pass');
    await turns();
  };
  const reservedIs = (cpus: string) => eventually(() => published()?.status?.reserved === cpus, `reserved ${cpus}`);

  it('creates the object, owned by the node, and writes its status', async () => {
    run();
    await reservedIs('0');
    assert.equal(published()?.metadata.ownerReferences?.[0]?.uid, 'node-uid-1');
    assert.equal(published()?.status?.kubeletVersion, 'v1.36.0');
  });

  it('has devices once the Node has them, and then counts those that are not healthy', async () => {
    const devices = [{ resource: 'a/vf', groups: [{ total: 4, free: 4 }] }];
    now = { ...inputs, view: { ...knownView, devices } };
    run();
    await reservedIs('0');
    assert.equal(published()?.status?.devices, undefined);
    const node = api.objects.get(`/api/v1/nodes/${NODE}`) as { status: object };
    Object.assign(node.status, { capacity: { 'a/vf': '6' }, allocatable: { 'a/vf': '4' } });
    await eventually(() => published()?.status?.devices !== undefined, 'devices');
    assert.deepEqual(published()?.status?.devices, [{ ...devices[0], unhealthy: 2 }]);
  });

  it('writes many changes in 200 ms once, and writes nothing without a change', async () => {
    run();
    await reservedIs('0');
    api.writes.length = 0;
    for (let i = 1; i <= 50; i++) reserve(`0-${i}`);
    await reservedIs('0-50');
    await rebuilt();
    assert.deepEqual(api.writes, [`PATCH ${PATH}/status`]);
  });

  it('counts each write and each failure', async () => {
    run();
    await reservedIs('0');
    await eventually(() => logged.said('published node topology'), 'said');
    assert.deepEqual(await valuesOf(metrics.reportWrites), { written: 1 });
    api.failing = true;
    reserve('0-1');
    await eventually(async () => ((await valuesOf(metrics.reportWrites))['failed'] ?? 0) > 0, 'a failure');
    api.failing = false;
    await reservedIs('0-1');
    await eventually(() => logged.said('recovered'), 'recovered');
    assert.ok(logged.said('publishing the node topology failed; retrying'));
    assert.equal((await valuesOf(metrics.reportWrites))['written'], 2);
  });

  const leaseTime = () =>
    (api.objects.get(`${LEASES}/${NAME}`)?.['spec'] as { renewTime?: string } | undefined)?.renewTime;
  for (const [what, stale] of [
    ['a source has not answered', { view: { ...knownView, isComplete: false, holds: ['the kubelet is silent'] } }],
    ['the networks are not read yet', { networks: undefined }],
    ['it cannot be built', { view: { ...knownView, policy: undefined } }],
  ] as const) {
    it(`is not followed by a renewal of the Lease while ${what}, and at once when that has ended`, async () => {
      now = { ...inputs, ...stale };
      run();
      await eventually(() => logged.said('the agent’s Lease is not renewed: the report is not current'), 'said');
      assert.equal(leaseTime(), undefined);
      now = inputs;
      changed();
      await eventually(() => leaseTime() !== undefined, 'renewed');
      assert.equal(published()?.status?.reserved, '0');
    });
  }

  it('is not followed by a renewal of the Lease while it cannot be written', async () => {
    const { patch } = api.client;
    api.client.patch = (path, ...more) =>
      path === `${PATH}/status` ? Promise.reject(new KubeError(422, 'Invalid', 'refused')) : patch(path, ...more);
    run();
    await eventually(() => logged.said('the agent’s Lease is not renewed: the report is not current'), 'said');
    assert.equal(leaseTime(), undefined);
  });

  it('omits fields that the API server’s schema does not have, logs them once with the next step, and does not write them repeatedly', async () => {
    const { patch } = api.client;
    api.client.patch = async (...args) => {
      const object = (await patch(...args)) as unknown as NodeTopology;
      delete (api.objects.get(PATH) as unknown as NodeTopology).status?.distances;
      delete object.status?.distances;
      return object;
    };
    run();
    await reservedIs('0');
    await eventually(() => logged.said('published node topology'), 'written');
    api.writes.length = 0;
    await rebuilt();
    assert.deepEqual(api.writes, []);
    reserve('0-1');
    await reservedIs('0-1');
    await eventually(() => logged.lines.filter(({ msg }) => msg === 'published node topology').length === 2, 'twice');
    const [{ dropped, hint } = {}, ...more] = logged.lines.filter((line) => line.level === 40);
    assert.deepEqual([dropped, more], ['distances', []]);
    assert.equal(hint, 'kubectl apply --server-side -f manifests/base/crd/nodetopologies.yaml');
  });
});

describe('a NodeTopology that is deleted', () => {
  setUp();
  const start = useDuties();
  const clock = useVirtualClock(0);

  for (const [what, awaySeconds] of [
    ['it was deleted', 0],
    ['its definition, which was deleted for 40 s, is applied again', 40],
  ] as const) {
    it(`returns within 30 s after ${what}, with a line in the log; until then it is read every 15 to 20 s`, async () => {
      let reads = 0;
      let isDefined = true;
      const { get, create } = api.client;
      api.client.get = (path, ...more) => {
        if (path === PATH) reads++;
        return get(path, ...more);
      };
      api.client.create = (path, ...more) =>
        isDefined ? create(path, ...more) : Promise.reject(new KubeError(404, 'NotFound', 'no such resource'));
      start(createReport());
      await clock.pass(2, 0.25);
      assert.equal(published()?.status?.reserved, '0');
      [reads, builds] = [0, 0];
      await clock.pass(120, 0.25);
      assert.ok(reads >= 6 && reads <= 8, `${reads} reads in 120 s`);
      assert.ok(builds >= 11 && builds <= 20, `${builds} checks in 120 s without the kubelet’s configuration`);
      api.objects.delete(PATH);
      isDefined = awaySeconds === 0;
      await clock.pass(awaySeconds, 0.25);
      isDefined = true;
      await clock.pass(30, 0.25);
      assert.equal(published()?.status?.reserved, '0');
      assert.ok(logged.said('the NodeTopology was deleted; publishing it again'));
    });
  }
});

describe('the node’s NodeTopology on the API server', () => {
  setUp();
  const { signal } = new AbortController();
  const status = buildStatus(inputs, undefined, '2026-01-01T00:00:00Z')!;
  let store: TopologyStore;
  let identity: NodeIdentity;
  const hasChanges = () => store.changesTo(status).length > 0;

  beforeEach(async () => {
    store = new TopologyStore(api.client, NODE);
    identity = await readNode(api.client, NODE, signal);
  });

  it('is read if another client creates it at the same time', async () => {
    const { create } = api.client;
    api.client.create = (...args) => {
      const { apiVersion, kind } = args[1] as { apiVersion: string; kind: string };
      api.objects.set(PATH, { apiVersion, kind, metadata: { name: NODE }, status: structuredClone(status) });
      return create(...args);
    };
    await store.sync(identity, signal);
    assert.deepEqual([store.published?.reserved, hasChanges()], [status.reserved, false]);
  });

  it('is written until it has the status, which another writer may have changed', async () => {
    await store.sync(identity, signal);
    assert.equal(hasChanges(), true);
    await store.write(status, signal);
    assert.deepEqual([hasChanges(), store.dropped], [false, []]);
    await store.sync(identity, signal);
    assert.equal(hasChanges(), false);
    const stored = api.objects.get(PATH) as { metadata: { resourceVersion: string }; status: { reserved: string } };
    stored.metadata.resourceVersion = 'of another writer';
    stored.status.reserved = '3';
    await store.sync(identity, signal);
    assert.equal(hasChanges(), true);
  });
});

describe('the changes of a report', () => {
  it('merge patches turn the old value into the new one, and are omitted for equal values', () => {
    const json = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
      value: fc.oneof(fc.string(), fc.integer(), fc.array(fc.string(), { maxLength: 2 }), tie('object')),
      object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    })).object;
    fc.assert(
      fc.property(json, json, (from, to) => {
        const patch = createMergePatch(from, to);
        assert.deepEqual(patch === undefined ? from : applyMergePatch(from, patch), to);
        assert.equal(createMergePatch(to, to), undefined);
      }),
    );
  });
});

describe('the agent’s Lease, renewal by renewal', () => {
  setUp();
  const start = useDuties();
  const clock = useVirtualClock();
  let created: number;

  beforeEach(() => {
    created = 0;
  });
  /** Renews whenever that is due, as with a report that is always current. */
  const run = async () => {
    const wallClock = () => Date.UTC(2026, 0, 1);
    const lease = new AgentLease({ client: api.client, nodeName: NODE, log: logged.log, metrics, wallClock });
    const renew = async (signal: AbortSignal) => {
      if (await lease.renew(signal)) created++;
      return Math.max(0, lease.dueAt - monotonicSeconds());
    };
    const run = async (signal: AbortSignal) => {
      while (!signal.aborted) await sleep(await renew(signal), signal).catch(() => undefined);
    };
    start({ run });
    await turns();
  };
  const spec = () => api.objects.get(`${LEASES}/${NAME}`)?.['spec'];

  it('creates its Lease once, and renews it every ten seconds with a later time', async () => {
    await run();
    const first = { holderIdentity: NODE, leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' };
    assert.deepEqual(spec(), first);
    const { metadata } = api.objects.get(`${LEASES}/${NAME}`) as { metadata: { ownerReferences: { uid: string }[] } };
    assert.equal(metadata.ownerReferences[0]?.uid, 'node-uid-1');
    assert.equal(created, 1);
    const { length } = api.writes;
    await clock.pass(9.999);
    assert.equal(api.writes.length, length);
    await clock.pass(0.001);
    await clock.pass(10);
    assert.deepEqual(api.writes.slice(length), [`PATCH ${LEASES}/${NAME}`, `PATCH ${LEASES}/${NAME}`]);
    assert.deepEqual(spec(), { ...first, renewTime: '2026-01-01T00:00:00.000002Z' });
    assert.deepEqual([created, await valuesOf(metrics.heartbeats), logged.lines], [1, { renewed: 3 }, []]);
  });

  it('counts each failure and renews afterwards', async () => {
    api.failing = true;
    await run();
    await clock.pass(10);
    assert.deepEqual(await valuesOf(metrics.heartbeats), { failed: 2 });
    assert.deepEqual([...new Set(api.writes)], [`PATCH ${LEASES}/${NAME}`], 'only a missing Lease is created');
    api.failing = false;
    await clock.pass(10);
    assert.deepEqual(await valuesOf(metrics.heartbeats), { failed: 2, renewed: 1 });
    assert.deepEqual(messagesOf(logged), ['40 renewing the agent’s Lease failed; retrying', '30 recovered']);
  });

  it('creates its Lease again after Kubernetes deleted it with the node, and says so', async () => {
    await run();
    api.objects.delete(`${LEASES}/${NAME}`);
    await clock.pass(10);
    assert.equal(created, 2);
    assert.ok(spec() !== undefined);
    assert.deepEqual(messagesOf(logged), ['40 the agent’s Lease was deleted; created it again']);
  });
});
