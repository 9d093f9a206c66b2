import assert from 'node:assert/strict';
import { NODE_TOPOLOGY_API, type PinningState } from '../../kube/node-topology.ts';
import { CPU_MASK_ANNOTATION, DPU_HOST_LABEL, PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { Cluster } from '../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import type { LeaseView } from '../../scheduler-plugin/cluster/dpu-health.ts';
import { createMaskedVms, type MaskedInstance } from '../../scheduler-plugin/cluster/masked-vms.ts';
import { createApi, type ListCall } from '../kube/scripted-api-stand-in.ts';
import { silent } from '../support/logger.ts';
import { until } from '../support/until.ts';
import { onNode, owned, podOf, reader, statusOf, withUid } from './extender-fixture.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/pods';
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces';
const AGENTS = `${LEASES}/plumbline-system/leases`;
const DPUS = `${LEASES}/ovn-kubernetes/leases`;
const SLICES = '/apis/resource.k8s.io/v1/resourceslices';
const ZONE = 'topology.kubernetes.io/zone';
/** A cluster with an API server, and a clock that stands still. */
function startCluster(pageOf?: Parameters<typeof createApi>[0]) {
  const api = createApi(pageOf);
  const { client } = api;
  const state = new ClusterState(silent);
  const clock = { now: 1000 };
  const common = { client, log: silent, nowSeconds: () => clock.now };
  const cluster = new Cluster({ ...common, state, reader, dpuLeaseNamespace: 'ovn-kubernetes' });
  const ending = new AbortController();
  const running = cluster.run(ending.signal);
  const end = () => {
    ending.abort();
    return running;
  };
  return { api, state, clock, cluster, end };
}
describe('the watches of the extender', () => {
  let started: ReturnType<typeof startCluster>;
  const start = async (pageOf?: Parameters<typeof startCluster>[0]) => {
    started = startCluster(pageOf);
    await until('the watches', () => [NODES, REPORTS, AGENTS, DPUS, SLICES].every(started.api.watched));
    return started;
  };
  afterEach(() => started.end());

  const push = (path: string, type: string, name: string, more: { metadata?: object; [field: string]: unknown } = {}) =>
    started.api.push(path, type, { ...more, metadata: { name, resourceVersion: '2', ...more.metadata } });
  /** After all changes of Nodes so far. */
  const flush = async (name: string) => {
    push(NODES, 'ADDED', name);
    await until(name, () => started.cluster.nodes.has(name));
  };

  it('report which lists are not synced yet', () => {
    started = startCluster();
    const missing = 'not synced yet: reports, nodes, pods, DPU leases, agents’ leases, resource slices';
    assert.equal(started.cluster.missing, missing);
  });

  it('use the current report of a node from its creation until its deletion', async () => {
    const { state } = await start();
    await flush('n1');
    const free = () => String(state.fleet.get('n1')?.free.map(({ cpus }) => cpus));
    assert.equal(free(), '');
    push(REPORTS, 'ADDED', 'n1', { status: statusOf() });
    await until('the report', () => free() === '6,8');
    const assignments = [owned('other', '2-3,10-11')];
    push(REPORTS, 'MODIFIED', 'n1', { status: statusOf({ assignments }) });
    await until('the assignment', () => free() === '2,8');
    push(REPORTS, 'DELETED', 'n1');
    await until('the report to be forgotten', () => free() === '');
  });

  const CHANGES: readonly [label: string, change: { metadata?: object; status?: object }, counts: boolean][] = [
    ['becomes a DPU host', { metadata: { labels: { [DPU_HOST_LABEL]: '' } } }, true],
    ['has more CPUs', { status: { capacity: { cpu: '32' } } }, true],
    ['moves to another zone', { metadata: { labels: { [ZONE]: 'b' } } }, false],
  ];
  for (const [label, change, counts] of CHANGES)
    it(`a node that ${label} ${counts ? 'may wake pods' : 'wakes no pod'}`, async () => {
      const { state } = await start();
      push(NODES, 'ADDED', 'n1', { status: { capacity: { cpu: '16' } } });
      await flush('before');
      const improved: string[] = [];
      state.on('improved', (node) => void improved.push(node));
      push(NODES, 'MODIFIED', 'n1', { status: { capacity: { cpu: '16' } }, ...change });
      await flush('after');
      assert.deepEqual(improved, counts ? ['n1', 'after'] : ['after']);
      assert.equal(state.fleet.get('n1')?.labels.get(ZONE), counts ? undefined : 'b');
    });

  it('deliver DPU Leases by node, ignore other Leases in the namespace, and report a deleted Lease', async () => {
    const { cluster } = await start();
    const leases = new Map<string, LeaseView | undefined>();
    cluster.on('dpuLease', (node, view) => void leases.set(node, view));
    const spec = { renewTime: '2026-11-01T10:00:00.000000Z', leaseDurationSeconds: 30, holderIdentity: 'a' };
    for (const name of ['ovn-kubernetes-master', 'ovn-dpu-n1']) push(DPUS, 'ADDED', name, { spec });
    await until('the Lease', () => leases.get('n1')?.duration === 30);
    push(DPUS, 'DELETED', 'ovn-dpu-n1');
    await until('the Lease to be deleted', () => leases.get('n1') === undefined);
    assert.deepEqual([...leases.keys()], ['n1']);
  });

  it('mark a node while it has a slice of the CPU driver of DRA', async () => {
    const { state } = await start();
    push(SLICES, 'ADDED', 'a', { spec: { driver: 'dra.cpu', nodeName: 'n1' } });
    await until('the slice', () => state.fleet.get('n1')?.draCpu);
    push(SLICES, 'DELETED', 'a', { spec: { driver: 'dra.cpu', nodeName: 'n1' } });
    await until('its deletion', () => state.fleet.size === 0);
  });

  it('mark the report of a silent agent as stale, until its Node and its Lease are deleted', async () => {
    const { api, state, clock, cluster } = await start();
    const beat = (type: string, second = 0) => {
      const renewTime = `2026-11-01T10:00:0${second}.000000Z`;
      push(AGENTS, type, 'plumbline-agent-n1', {
        metadata: { namespace: 'plumbline-system' },
        spec: { renewTime, leaseDurationSeconds: 40 },
      });
    };
    await flush('n1');
    beat('ADDED');
    beat('MODIFIED', 1);
    await until('the renewal', () => state.fleet.get('n1')?.agentRenewed);
    clock.now += 50;
    api.push(AGENTS, 'BOOKMARK', { metadata: { resourceVersion: '3' } });
    await until('the report to be stale', () => state.fleet.get('n1')?.stale);
    assert.equal(cluster.silentAgents, 1);
    push(NODES, 'DELETED', 'n1');
    beat('DELETED');
    await until('the report to be forgotten', () => state.fleet.get('n1') === undefined);
  });

  it('quarantine a report that cannot be parsed, and pass on the pinning states of the others', async () => {
    const pinning = [{ podUID: 'p', namespace: 'default', podName: 'vm', state: 'pinned' as const, vcpus: 2 }];
    const pinned = new Map<string, readonly PinningState[]>();
    const { cluster, state } = await start();
    cluster.on('pinnings', (node, states) => void pinned.set(node, states));
    push(REPORTS, 'ADDED', 'good', { status: { ...statusOf(), pinning } });
    push(REPORTS, 'ADDED', 'plain', { status: statusOf() });
    push(REPORTS, 'ADDED', 'empty');
    push(REPORTS, 'ADDED', 'bad', { status: { ...statusOf(), cells: 'none' } });
    await until('the last report', () => pinned.has('bad'));
    assert.deepEqual([...state.faults.keys()], ['bad']);
    assert.deepEqual(Object.fromEntries(pinned), { good: pinning, plain: [], empty: [], bad: [] });
  });

  it('are bypassed by a replica that becomes active: it reads each page of bound pods with exclusive CPUs', async () => {
    const on = (uid: string, cpu = '4') => onNode(withUid(podOf(cpu), uid));
    const pages = [[on('a'), { metadata: {} }, 7], null, [on('shared', '500m'), on('b')]];
    const calls: ListCall[] = [];
    const { cluster, state } = await start((call) => {
      if (call.query['fieldSelector'] !== 'status.phase=Pending,spec.nodeName!=') return { items: [] };
      const items = pages[calls.push(call) - 1] ?? null;
      return calls.length < pages.length ? { items, continue: `page-${calls.length}` } : { items };
    });
    await cluster.catchUp(new AbortController().signal);
    const read = calls.map(({ path, query }) => [path, query['continue'], query['limit']].join());
    assert.deepEqual(read, ['/api/v1/pods,,500', '/api/v1/pods,page-1,500', '/api/v1/pods,page-2,500']);
    const kinds = ['a', 'b'].map((uid) => state.reservations.of(uid)?.kind);
    assert.deepEqual([kinds, state.reservations.size], [['bound', 'bound'], 2]);
  });

  it('lose the pods that were deleted while the watch was lost, with the next list that does not contain them', async () => {
    const on = (uid: string) => onNode(withUid(podOf('4'), uid, { resourceVersion: '2' }));
    const lists: { bound: readonly object[]; all: readonly object[] } = { bound: [on('missed'), on('known')], all: [] };
    const { api, cluster, state } = await start(({ path, query }) => {
      if (path !== PODS) return { items: [] };
      return { items: query['fieldSelector'] === undefined ? lists.all : lists.bound };
    });
    await until('the watch of pods', () => api.watched(PODS));
    const catchUp = () => cluster.catchUp(new AbortController().signal);
    const kinds = () => ['missed', 'known', 'promised'].map((uid) => state.reservations.of(uid)?.kind);
    await catchUp();
    api.push(PODS, 'ADDED', on('known'));
    await until('the pod that the watch brings', () => cluster.pods.size === 1);
    const pod = reader.read(podOf('4'));
    const places = new Map([['n2', { cpus: undefined, score: 0 }]]);
    state.reservations.reserve({ namespace: 'default', uid: 'promised', pod, places, version: '1', expires: 1060 });
    assert.deepEqual(kinds(), ['bound', 'bound', 'tentative']);
    lists.bound = [];
    await catchUp();
    assert.deepEqual(kinds(), [undefined, 'bound', 'tentative'], 'one that the watch has may have started');
    api.push(PODS, 'ERROR', { code: 410, reason: 'Expired', message: 'too old resource version' });
    await until('the list without it', () => cluster.pods.size === 0);
    assert.deepEqual(kinds(), [undefined, undefined, 'tentative']);
  });
});
const VMS = '/apis/kubevirt.io/v1/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/virtualmachineinstances';
const MASK = { annotations: { [CPU_MASK_ANNOTATION]: '2:3' } };
const domain = { cpu: { sockets: 1, cores: 2, threads: 1 }, devices: {} };
const owner = (kind: string) => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind, name: 'owner', uid: 'owner-uid', controller: true }],
});
describe('the watch of the extender for VMs with CPU masks', () => {
  const api = createApi();
  const ending = new AbortController();
  const instances = new Map<string, MaskedInstance | undefined>();
  const masked = createMaskedVms({
    client: api.client,
    onInstance: (key, one) => void instances.set(key, one),
    log: silent,
    nowSeconds: () => 0,
  });
  let running: Promise<unknown>;
  before(async () => {
    running = masked.run(ending.signal);
    await until('the watches', () => api.watched(VMS) && api.watched(VMIS));
  });
  after(() => {
    ending.abort();
    return running;
  });

  /** What is reported of a VMI after a change. */
  const changed = async (name: string, metadata: object, status: object = {}, type = 'ADDED') => {
    instances.delete(name);
    api.push(VMIS, type, { metadata: { name, resourceVersion: '2', ...metadata }, spec: { domain }, status });
    await until(name, () => instances.has(name));
    return instances.get(name);
  };

  it('ignores a VMI without a mask and without a waiting start', async () => {
    api.push(VMIS, 'ADDED', { metadata: { name: 'plain', resourceVersion: '2' }, spec: { domain } });
    await changed('after', MASK);
    assert.equal(instances.has('plain'), false);
    assert.equal([...masked.all()].length, 1);
  });

  it('reports where a VMI with a mask runs and since when it is paused', async () => {
    const since = '2026-11-01T10:00:00Z';
    const conditions = [
      { type: 'Ready', status: 'True', reason: 'Up', lastTransitionTime: '2026-11-01T09:00:00Z' },
      { type: 'Paused', status: 'False', reason: 'Before', lastTransitionTime: '2026-11-01T09:30:00Z' },
      { type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: since },
    ];
    const status = { phase: 'Running', nodeName: 'n1', activePods: { 'pod-uid': 'n1' }, conditions };
    const { node, pods, phase, paused, ofMachine, record } = (await changed('paused', MASK, status)) ?? assert.fail();
    assert.deepEqual(
      [node, pods, phase, paused, ofMachine, record],
      ['n1', { 'pod-uid': 'n1' }, 'Running', { reason: 'PausedByUser', since }, false, undefined],
    );
  });

  it('counts a VMI that a VM created once, with its VM', async () => {
    const template = { metadata: MASK, spec: { domain } };
    api.push(VMS, 'ADDED', { metadata: { name: 'machine', resourceVersion: '2' }, spec: { template } });
    const made = await changed('made', { ...MASK, ...owner('VirtualMachine') });
    const pooled = await changed('pooled', { ...MASK, ...owner('VirtualMachineInstanceReplicaSet') });
    assert.deepEqual([made?.ofMachine, pooled?.ofMachine], [true, false]);
    await until('after, paused, pooled and the VM', () => [...masked.all()].length === 4);
  });

  it('keeps a VMI without a mask if its start waits, and drops a VMI that is being deleted', async () => {
    const waits = { annotations: { [PAUSED_START_ANNOTATION]: 'waiting' } };
    assert.notEqual(await changed('waits', waits), undefined);
    const deleting = { ...waits, deletionTimestamp: '2026-11-01T10:00:00Z' };
    assert.equal(await changed('waits', deleting, {}, 'MODIFIED'), undefined);
  });
});
