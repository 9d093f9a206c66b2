import assert from 'node:assert/strict';
import { NODE_TOPOLOGY_API } from '../../../kube/node-topology.ts';
import {
  CPU_MASK_ANNOTATION,
  DPU_HOST_LABEL,
  PAUSED_START_ANNOTATION,
  RECHECK_ANNOTATION,
} from '../../../model/names.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { Decisions } from '../../../scheduler-plugin/filter/decisions.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { parseSchedulerPluginConfig } from '../../../scheduler-plugin/wiring/config.ts';
import { createDecider } from '../../../scheduler-plugin/wiring/decider.ts';
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
  let decider: ReturnType<typeof createDecider>;
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
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ovn-kubernetes' } };
    await api.client.create('/api/v1/namespaces', namespace);
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
    decider = createDecider({
      ...common,
      config,
      cluster,
      replica: { isActive: () => state.active, mayAnswer: () => true },
      events: { record: ({ kind, name }, { reason }) => void events.push(`${kind} ${name} ${reason}`) },
      decisions: new Decisions(),
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
  const node = async (name: string) => (await api.client.get(`${NODES}/${name}`)) as Item;
  const ready = async (name: string) =>
    (await node(name)).status?.conditions?.find(({ type }) => type === 'plumbline.dev/DPUReady')?.status;
  /** No kubelet ends the pods here: an evicted pod stays in deletion. */
  const stays = async (pod: string) =>
    ((await api.client.get(`${PODS}/${pod}`)) as Item).metadata.deletionTimestamp === undefined;
  const fits = (name: string) => decider.verdicts.wouldFit(decider.extender.needsOf(podOf('4')), name);
  const count = async (counter: { get(): Promise<{ values: { value: number; labels: object }[] }> }) =>
    (await counter.get()).values.map(({ value, labels }) => [...Object.values(labels), value].join(' '));

  it('with --dpu-lease observe, a DPU is alive after five renewals in a row', async () => {
    await addNode('n1', { [DPU_HOST_LABEL]: '' });
    await api.client.create(LEASES, lease('n1', '2026-11-01T10:00:00.000000Z'));
    await start('--dpu-lease', 'observe');
    for (let renewal = 1; renewal <= 5; renewal++) {
      assert.equal(fits('n1'), false, `after ${renewal - 1}`);
      clock.now += 5;
      const { spec } = lease('n1', `2026-11-01T10:00:0${renewal}.000000Z`);
      await api.client.patch(`${LEASES}/ovn-dpu-n1`, MERGE, { spec });
      // Another object of the same watch, so that the renewal has arrived.
      await api.client.create(LEASES, lease(`after-${renewal}`, '2026-11-01T10:00:00.000000Z'));
      await eventually(() => cluster.state.fleet.get(`after-${renewal}`) !== undefined, 'the renewal');
    }
    assert.equal(fits('n1'), true);
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
    assert.deepEqual(await count(metrics.evictions), ['evicted 1']);
    const touched = async () => {
      const found = await Promise.all(['n1', 'odd', 'dead'].map(node));
      return found.filter(({ metadata }) => metadata.annotations?.[RECHECK_ANNOTATION] !== undefined).length;
    };
    await eventually(async () => (await touched()) > 0, 'the recheck');
  });
});
