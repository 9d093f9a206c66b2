import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { createHeartbeat } from '../../../node-agent/report/heartbeat.ts';
import { createFakeApi, type FakeApi } from '../api-stand-in.ts';
import { recordingLogger, testMetrics, turns, useDuties } from '../support.ts';

const NODE = 'worker-1';
const NAME = `plumbline-agent-${NODE}`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';

describe('the agent’s heartbeat, beat by beat', () => {
  const start = useDuties();
  let api: FakeApi;
  let created: number;
  let now: number;
  let logged: ReturnType<typeof recordingLogger>;
  let metrics: ReturnType<typeof testMetrics>;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    now = 100_000;
    mock.method(performance, 'now', () => now);
    api = createFakeApi(NODE);
    created = 0;
    logged = recordingLogger();
    metrics = testMetrics();
  });
  afterEach(() => {
    mock.timers.reset();
    mock.reset();
  });

  const run = () =>
    start(
      createHeartbeat({
        client: api.client,
        nodeName: NODE,
        log: logged.log,
        metrics,
        wallClock: () => Date.UTC(2026, 0, 1),
        onCreated: () => created++,
      }),
    );
  const pass = async (seconds: number) => {
    now += seconds * 1000;
    mock.timers.tick(seconds * 1000);
    await turns();
  };
  const spec = () => api.objects.get(`${LEASES}/${NAME}`)?.['spec'];
  const outcomes = async () =>
    Object.fromEntries((await metrics.heartbeats.get()).values.map(({ labels, value }) => [labels.outcome, value]));

  it('creates its Lease once, and renews it every ten seconds with a later time', async () => {
    run();
    await turns();
    const first = { holderIdentity: NODE, leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' };
    assert.deepEqual(spec(), first);
    const { metadata } = api.objects.get(`${LEASES}/${NAME}`) as { metadata: { ownerReferences: { uid: string }[] } };
    assert.equal(metadata.ownerReferences[0]?.uid, 'node-uid-1');
    assert.equal(created, 1);
    const { length } = api.writes;
    await pass(9.999);
    assert.equal(api.writes.length, length);
    await pass(0.001);
    await pass(10);
    assert.deepEqual(api.writes.slice(length), [`PATCH ${LEASES}/${NAME}`, `PATCH ${LEASES}/${NAME}`]);
    assert.deepEqual(spec(), { ...first, renewTime: '2026-01-01T00:00:00.000002Z' });
    assert.deepEqual([created, await outcomes(), logged.lines], [1, { renewed: 3 }, []]);
  });

  it('counts each failure and renews afterwards', async () => {
    api.failing = true;
    run();
    await turns();
    await pass(10);
    assert.deepEqual(await outcomes(), { failed: 2 });
    assert.deepEqual([...new Set(api.writes)], [`PATCH ${LEASES}/${NAME}`], 'only a missing Lease is created');
    assert.ok(logged.said('renewing the agent’s Lease failed; retrying'));
    api.failing = false;
    await pass(10);
    assert.deepEqual(await outcomes(), { failed: 2, renewed: 1 });
  });

  it('creates its Lease again after Kubernetes deleted it with the node, and says so', async () => {
    run();
    await turns();
    api.objects.delete(`${LEASES}/${NAME}`);
    await pass(10);
    assert.equal(created, 2);
    assert.ok(spec() !== undefined);
    assert.deepEqual(
      logged.lines.map(({ msg }) => msg),
      ['the agent’s Lease was deleted; created it again'],
    );
  });
});
