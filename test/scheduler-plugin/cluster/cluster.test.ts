import assert from 'node:assert/strict';
import { NODE_TOPOLOGY_API } from '../../../kube/node-topology.ts';
import { DPU_HOST_LABEL } from '../../../model/names.ts';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import type { LeaseView } from '../../../scheduler-plugin/cluster/dpu-health.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silent } from '../../support/logger.ts';
import { type ExtenderUnderTest, extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const NODES = '/api/v1/nodes';
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces';
const MERGE = 'application/merge-patch+json';
const ZONE = 'topology.kubernetes.io/zone';

describe('the watches of the extender', () => {
  let api: ApiFixture;
  let under: ExtenderUnderTest;
  let cluster: Cluster;
  let ending: AbortController;
  let running: Promise<void>;
  const leases = new Map<string, LeaseView | undefined>();
  /** The nodes that the state received, in order. */
  const seen: string[] = [];

  beforeEach(async () => {
    api = await startApi();
    leases.clear();
    seen.length = 0;
    under = extenderOf({ nodes: {} });
    const { state } = under;
    const changed = state.nodeChanged.bind(state);
    state.nodeChanged = (node, view) => {
      seen.push(node);
      changed(node, view);
    };
    cluster = new Cluster({
      client: api.client,
      state,
      reader: new NeedsReader('all'),
      dpuLeaseNamespace: 'ovn-kubernetes',
      log: silent,
      now: () => performance.now() / 1000,
    });
    cluster.on('dpuLease', (node, view) => void leases.set(node, view));
    ending = new AbortController();
  });
  afterEach(async () => {
    ending.abort();
    await running;
    await api.stop();
  });

  const run = async () => {
    running = cluster.run(ending.signal);
    await eventually(() => cluster.missing === undefined, 'all lists to arrive');
  };
  const addNode = (name: string, labels: Readonly<Record<string, string>> = {}) =>
    api.client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/arch': 'amd64', ...labels } },
      status: { capacity: { cpu: '16' }, allocatable: {} },
    });
  const addReport = async (name: string) => {
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    await api.client.create(REPORTS, { apiVersion, kind, metadata: { name } });
    await api.client.patch(`${REPORTS}/${name}/status`, MERGE, { status: statusOf() });
  };
  const fits = (name: string) => under.filter(withUid(podOf('4'), 'asks'), [name]).NodeNames.length === 1;
  /** A node that arrives after everything that was written before it. */
  const flush = async (name: string) => {
    await addNode(name);
    await eventually(() => seen.includes(name), name);
  };

  it('report which lists are not synced yet', async () => {
    const missing = 'not synced yet: reports, nodes, pods, DPU leases, agents’ leases, resource slices';
    assert.equal(cluster.missing, missing);
    await run();
  });

  it('use the current report of a node from its creation until its deletion', async () => {
    await run();
    await addNode('n1');
    assert.equal(fits('n1'), false);
    await addReport('n1');
    await eventually(() => fits('n1'), 'the report');
    const changed = { status: { assignments: [{ podUID: 'other', container: 'compute', cpus: '2-3,10-11' }] } };
    await api.client.patch(`${REPORTS}/n1/status`, MERGE, changed);
    const free = () => under.filter(withUid(podOf('12'), 'large'), ['n1']).NodeNames.length === 1;
    await eventually(() => !free(), 'the assignment');
    assert.ok(fits('n1'));
    await api.client.delete(`${REPORTS}/n1`);
    await eventually(() => !fits('n1'), 'the report to be forgotten');
  });

  it('have the labels of a node as they are now, whose change does not wake pods', async () => {
    await addNode('n1', { [ZONE]: 'a' });
    await run();
    await flush('before');
    seen.length = 0;
    await api.client.patch(`${NODES}/n1`, MERGE, { metadata: { labels: { [ZONE]: 'b' } } });
    await flush('after');
    assert.deepEqual(seen, ['after']);
    assert.equal(under.state.fleet.get('n1')?.labels.get(ZONE), 'b');
  });

  const CHANGES: readonly [string, object, boolean][] = [
    ['becomes a DPU host', { metadata: { labels: { [DPU_HOST_LABEL]: '' } } }, true],
    ['has more CPUs', { status: { capacity: { cpu: '32' } } }, true],
    ['has an unrelated label', { metadata: { labels: { team: 'a' } } }, false],
  ];
  for (const [name, change, counts] of CHANGES) {
    it(`a node that ${name} is ${counts ? '' : 'not '}processed again`, async () => {
      await addNode('n1', { [ZONE]: 'a' });
      await run();
      await flush('before');
      seen.length = 0;
      await api.client.patch(`${NODES}/n1${'status' in change ? '/status' : ''}`, MERGE, change);
      await flush('after');
      assert.deepEqual(seen, counts ? ['n1', 'after'] : ['after']);
    });
  }

  it('deliver DPU Leases by node, ignore other Leases in the namespace, and report a deleted Lease', async () => {
    const lease = (name: string, spec: object) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name },
      spec,
    });
    await api.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'ovn-kubernetes' },
    });
    const path = `${LEASES}/ovn-kubernetes/leases`;
    const renewTime = '2026-11-01T10:00:00.000000Z';
    await api.client.create(path, lease('ovn-kubernetes-master', { renewTime }));
    await api.client.create(path, lease('ovn-dpu-n1', { renewTime, leaseDurationSeconds: 30, holderIdentity: 'a' }));
    await run();
    assert.deepEqual([...leases.keys()], ['n1']);
    assert.equal(leases.get('n1')?.duration, 30);
    await api.client.delete(`${path}/ovn-dpu-n1`);
    await eventually(() => leases.get('n1') === undefined, 'the Lease to be deleted');
  });
});
