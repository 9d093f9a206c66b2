import assert from 'node:assert/strict';
import { NODE_TOPOLOGY_API } from '../../../kube/node-topology.ts';
import type { Pod } from '../../../kube/resources.ts';
import {
  CPU_MASK_ANNOTATION,
  DPU_HOST_LABEL,
  DPU_RESTARTED_CONDITION,
  DPU_RUN_ANNOTATION,
  PAUSED_START_ANNOTATION,
  RECHECK_ANNOTATION,
} from '../../../model/names.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { parseExtenderArgs } from '../../../scheduler-plugin/extender/args.ts';
import { Decisions } from '../../../scheduler-plugin/filter/decisions.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { parseSchedulerPluginConfig } from '../../../scheduler-plugin/wiring/config.ts';
import { Decider } from '../../../scheduler-plugin/wiring/decider.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silent } from '../../support/logger.ts';
import { podOf, statusOf, unschedulable, withUid } from '../extender-fixture.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/namespaces/default/pods';
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const MERGE = 'application/merge-patch+json';
const PAUSED_AT = '2026-11-01T10:00:00Z';
const UNSCHEDULABLE = unschedulable('0/1 nodes are available: 1 DPU not ready.');

interface Metadata {
  readonly name: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}
interface Item {
  readonly metadata: Metadata;
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

describe('the parts of the extender together', () => {
  let api: ApiFixture;
  let cluster: Cluster;
  let decider: Decider;
  let running: Promise<unknown>;
  let ending: AbortController;
  const events: string[] = [];
  const state = { active: true };
  const clock = { now: 100 };
  const metrics = createExtenderMetrics(createRegistry());

  beforeEach(async () => {
    api = await startApi();
    ending = new AbortController();
    events.length = 0;
    state.active = true;
    await api.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'ovn-kubernetes' },
    });
  });
  afterEach(async () => {
    decider.stop();
    ending.abort();
    await running;
    await api.stop();
  });

  const start = async (...flags: string[]) => {
    const config = parseSchedulerPluginConfig(flags);
    const reader = new NeedsReader(config.dpuScope, config.dpuExempt);
    const { client } = api;
    const { dpuLeaseNamespace } = config;
    const common = { client, reader, log: silent, nowSeconds: () => clock.now };
    cluster = new Cluster({ ...common, state: new ClusterState(silent), dpuLeaseNamespace });
    decider = new Decider({
      ...common,
      config,
      cluster,
      replica: { isActive: () => state.active, mayAnswer: () => true },
      events: {
        record: ({ kind, name }, { reason }) => void events.push(`${kind} ${name} ${reason}`),
        flush: async () => {},
      },
      decisions: new Decisions(() => 0),
      metrics,
    });
    running = decider.run(ending.signal);
    await eventually(() => cluster.missing === undefined, 'all lists to arrive');
  };
  const addNode = async (name: string, labels: object = {}, cpu = '16') => {
    const metadata = { name, labels: { 'kubernetes.io/arch': 'amd64', ...labels } };
    await api.client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata, status: { capacity: { cpu } } });
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    await api.client.create(REPORTS, { apiVersion, kind, metadata: { name } });
    await api.client.patch(`${REPORTS}/${name}/status`, MERGE, { status: statusOf() });
  };
  const addPod = async (name: string, spec: object = {}, status?: object) => {
    const pod = { apiVersion: 'v1', kind: 'Pod', ...withUid(podOf('4'), name) };
    await api.client.create(PODS, { ...pod, metadata: { name, namespace: 'default' }, spec: { ...pod.spec, ...spec } });
    if (status !== undefined) await api.client.patch(`${PODS}/${name}/status`, MERGE, { status });
  };
  /** On n1, in the launcher with the uid `launcher`. */
  const addPausedVmi = (annotations: object) =>
    api.client.create(VMIS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'vm', annotations },
      spec: { domain: { cpu: { cores: 2 }, devices: {} } },
      status: {
        phase: 'Running',
        nodeName: 'n1',
        activePods: { launcher: 'n1' },
        conditions: [{ type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: PAUSED_AT }],
      },
    });
  const record = async () =>
    ((await api.client.get(`${VMIS}/vm`)) as Item).metadata.annotations?.[PAUSED_START_ANNOTATION];
  const lease = (name: string, renewTime: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: `ovn-dpu-${name}` },
    spec: { holderIdentity: 'dpu', renewTime, leaseDurationSeconds: 40 },
  });
  const renew = (name: string, second: number) =>
    api.client.patch(`${LEASES}/ovn-dpu-${name}`, MERGE, {
      spec: { renewTime: `2026-11-01T10:00:${String(second).padStart(2, '0')}.000000Z` },
    });
  const node = async (name: string) => (await api.client.get(`${NODES}/${name}`)) as Item;
  const ready = async (name: string) =>
    (await node(name)).status?.conditions?.find(({ type }) => type === 'plumbline.dev/DPUReady')?.status;
  /** No kubelet ends the pods here: an evicted pod stays in deletion. */
  const stays = async (pod: string) =>
    ((await api.client.get(`${PODS}/${pod}`)) as Item).metadata.deletionTimestamp === undefined;
  const fits = (name: string, cpu = '4') => decider.verdicts.wouldFit(decider.extender.needsOf(podOf(cpu)), name);
  const count = async (counter: { get(): Promise<{ values: { value: number; labels: object }[] }> }) =>
    (await counter.get()).values.map(({ value, labels }) => [...Object.values(labels), value].join(' '));

  it('when a DPU dies, the condition reports it, pods that have not started are evicted, and the node accepts no more pods', async () => {
    await addNode('n1', { [DPU_HOST_LABEL]: '' });
    await api.client.create(LEASES, lease('n1', '2026-11-01T10:00:00.000000Z'));
    await start();
    await renew('n1', 1);
    await eventually(async () => (await ready('n1')) === 'True', 'the DPU to be alive');
    assert.equal(fits('n1'), true);
    await addPod('starts', { nodeName: 'n1' });
    await addPod('runs', { nodeName: 'n1' }, { phase: 'Running' });
    await eventually(() => cluster.pods.size === 2, 'the pods');
    clock.now += 41;
    await api.client.patch(`${LEASES}/ovn-dpu-n1`, MERGE, { spec: { holderIdentity: 'other' } });
    await eventually(async () => (await ready('n1')) === 'False', 'the DPU to be dead');
    assert.equal(fits('n1'), false);
    await eventually(async () => !(await stays('starts')), 'the eviction');
    assert.ok(await stays('runs'));
    assert.deepEqual(events, ['Pod starts EvictedBeforeStart']);
    assert.deepEqual(await count(metrics.evictions), ['evicted 1']);
    await renew('n1', 2);
    await eventually(async () => (await ready('n1')) === 'True', 'the DPU to be alive again');
    assert.equal(fits('n1'), true);
  });

  it('a DPU that restarts is a condition and an Event, until the last pod without a network has ended', async () => {
    const run = (changes: object) =>
      api.client.patch(`${LEASES}/ovn-dpu-n1`, MERGE, {
        metadata: { annotations: { [DPU_RUN_ANNOTATION]: JSON.stringify({ bootId: 'b', pid: 2, ...changes }) } },
      });
    const restarted = async () =>
      (await node('n1')).status?.conditions?.find(({ type }) => type === DPU_RESTARTED_CONDITION)?.status;
    const sandbox = { type: 'PodReadyToStartContainers', status: 'True', lastTransitionTime: '2097-01-01T00:00:00Z' };
    await addNode('n1', { [DPU_HOST_LABEL]: '' });
    await api.client.create(LEASES, lease('n1', '2026-11-01T10:00:00.000000Z'));
    for (const nodeName of ['n1', 'n2'])
      await addPod(`on-${nodeName}`, { nodeName }, { phase: 'Running', conditions: [sandbox] });
    await start();
    await run({});
    await run({ restart: { previous: { bootId: 'a', pid: 1 }, at: '2098-01-01T00:00:00Z' } });
    await eventually(async () => (await restarted()) === 'True', 'the condition');
    assert.deepEqual(events, ['Pod on-n1 NetworkLost']);
    await api.client.delete(`${PODS}/on-n1`, { body: { gracePeriodSeconds: 0 } });
    decider.becameActive();
    await eventually(async () => (await restarted()) === undefined, 'the end');
    assert.equal(events.length, 1);
  });

  it('an agent that falls silent and one that returns are a condition and an Event on the Node', async () => {
    const path = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'plumbline-system' } };
    await api.client.create('/api/v1/namespaces', namespace);
    const agentLease = (second: number) => ({ spec: lease('', `2026-11-01T10:00:0${second}.000000Z`).spec });
    const beat = (second: number) => api.client.patch(`${path}/plumbline-agent-n1`, MERGE, agentLease(second));
    const conditionIs = (status: string) =>
      eventually(
        async () =>
          (await node('n1')).status?.conditions?.find(({ type }) => type === 'plumbline.dev/AgentReady')?.status ===
          status,
        status,
      );
    await addNode('n1');
    await api.client.create(path, { ...lease('', ''), metadata: { name: 'plumbline-agent-n1' }, ...agentLease(0) });
    await start();
    await beat(1);
    await conditionIs('True');
    assert.deepEqual(events, [], 'an agent that reports for the first time is no news');
    clock.now += 40;
    // Another object of the same watch, so that the Lease was not only missed.
    await api.client.create(path, { ...lease('', ''), metadata: { name: 'other' }, ...agentLease(0) });
    await conditionIs('False');
    await beat(2);
    await conditionIs('True');
    assert.deepEqual(events, ['Node n1 AgentNotReady', 'Node n1 AgentReady']);
  });

  it('with --dpu-lease observe a DPU is alive after five renewals in a row', async () => {
    await addNode('n1', { [DPU_HOST_LABEL]: '' });
    await api.client.create(LEASES, lease('n1', '2026-11-01T10:00:00.000000Z'));
    await start('--dpu-lease', 'observe');
    for (let i = 1; i <= 5; i++) {
      assert.equal(fits('n1'), false, `after ${i - 1}`);
      clock.now += 5;
      await renew('n1', i);
      // Another object of the same watch, so that the renewal has arrived.
      await api.client.create(LEASES, lease(`after-${i}`, '2026-11-01T10:00:00.000000Z'));
      await eventually(() => decider.extender.state.fleet.get(`after-${i}`) !== undefined, 'the renewal');
    }
    assert.equal(fits('n1'), true);
  });

  it('a waiting pod is rechecked when its node improves, by one annotation, and the recheck is counted', async () => {
    await addNode('n1');
    await api.client.patch(`${REPORTS}/n1/status`, MERGE, {
      status: { assignments: [{ podUID: 'x', container: 'c', cpus: '1-7,9-15' }] },
    });
    await start();
    await eventually(() => !fits('n1'), 'the report');
    const before = Number((await count(metrics.rechecks))[0]);
    decider.recheck.waits({ uid: 'a', namespace: 'default' }, decider.extender.needsOf(podOf('4')));
    assert.equal(decider.recheck.waiting, 1);
    await api.client.patch(`${REPORTS}/n1/status`, MERGE, { status: { assignments: [] } });
    // The clock stands still: collected changes are written when the timer fires.
    await eventually(
      async () => (await node('n1')).metadata.annotations?.[RECHECK_ANNOTATION] !== undefined,
      'the annotation',
    );
    assert.deepEqual(await count(metrics.rechecks), [`${before + 1}`]);
  });

  it('the VMs with masks are counted, and a VM whose vCPUs are pinned is resumed and counted', async () => {
    await addNode('n1');
    await addPausedVmi({ [CPU_MASK_ANNOTATION]: '40:41', [PAUSED_START_ANNOTATION]: `paused ${PAUSED_AT}` });
    await start();
    const counts = async () =>
      (await Promise.all([metrics.maskedVms, metrics.maskedVmsWithoutNode, metrics.resumed].map(count))).flat();
    await eventually(async () => (await counts()).join() === '1,1,0', 'the count');
    const pinned = { podUID: 'launcher', namespace: 'default', podName: 'virt-launcher', vcpus: 2, state: 'pinned' };
    await api.client.patch(`${REPORTS}/n1/status`, MERGE, { status: { pinning: [pinned] } });
    await eventually(async () => (await record()) === 'resumed', 'the VM to be resumed');
    assert.deepEqual(await counts(), ['1', '1', '1']);
  });

  it('a node whose kubelet rejects a placed pod gets no more such pods', async () => {
    await addNode('n1');
    await start();
    await addPod('a');
    const { metadata, spec } = (await api.client.get(`${PODS}/a`)) as unknown as Pod;
    await eventually(() => fits('n1'), 'the node');
    decider.extender.filter(parseExtenderArgs({ Pod: { metadata, spec }, NodeNames: ['n1'] }), 0);
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'a' },
      target: { kind: 'Node', name: 'n1' },
    };
    await api.client.create(`${PODS}/a/binding`, binding);
    await api.client.patch(`${PODS}/a/status`, MERGE, { status: { phase: 'Failed', reason: 'SMTAlignmentError' } });
    await eventually(() => !fits('n1'), 'the exclusion');
    assert.deepEqual(events, ['Pod a PredictionDiffers']);
    const results = ['as_predicted 0', 'other_cpus 0', 'rejected 1', 'not_compared 0'];
    assert.deepEqual(await count(metrics.predictions), results);
    assert.equal(fits('n1', '2'), true);
  });

  it('a replica that becomes active does the work that another replica left, and not before', async () => {
    state.active = false;
    await addNode('n1');
    await addNode('odd', {}, '8');
    await addNode('dead', { [DPU_HOST_LABEL]: '' });
    await api.client.create(LEASES, lease('dead', '2026-11-01T10:00:00.000000Z'));
    await addPausedVmi({ [PAUSED_START_ANNOTATION]: 'waiting' });
    await start();
    clock.now += 41;
    await api.client.patch(`${LEASES}/ovn-dpu-dead`, MERGE, { spec: { holderIdentity: 'other' } });
    await addPod('stuck', { nodeName: 'dead' });
    await addPod('waits', {}, UNSCHEDULABLE);
    await eventually(() => cluster.pods.size === 2 && !fits('dead'), 'the pods and the DPU');
    const labels = async () => (await node('n1')).metadata.labels?.['plumbline.dev/threads-per-core'];
    assert.deepEqual(
      [events, await labels(), await record(), await ready('dead')],
      [[], undefined, 'waiting', undefined],
    );
    assert.equal(decider.recheck.waiting, 0);
    assert.ok(await stays('stuck'));
    state.active = true;
    decider.becameActive();
    assert.deepEqual([decider.recheck.waiting, events[0]], [1, 'Node odd ReportQuarantined']);
    await eventually(async () => (await labels()) === '2', 'the labels');
    await eventually(async () => (await record())?.startsWith('paused') === true, 'the record of the pause');
    await eventually(async () => (await ready('dead')) === 'False', 'the condition');
    await eventually(async () => !(await stays('stuck')), 'the eviction');
    const touched = async () => {
      const found = await Promise.all(['n1', 'odd', 'dead'].map(node));
      return found.filter(({ metadata }) => metadata.annotations?.[RECHECK_ANNOTATION] !== undefined).length;
    };
    await eventually(async () => (await touched()) > 0, 'the recheck');
  });
});
