import assert from 'node:assert/strict';
import type { SelectingSpec } from '../../../model/launcher/node-selection.ts';
import { parseConfiguredContext } from '../../../model/networks/context.ts';
import { type ClusterView, createClusterView } from '../../../webhook/cluster/cluster-view.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silent } from '../../support/logger.ts';

const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const MERGE = 'application/merge-patch+json';

describe('the cluster view of the webhook', () => {
  let api: ApiFixture;
  let view: ClusterView;
  const running = new AbortController();

  const addNode = async (name: string, labels: Record<string, string>, status: object) => {
    await api.client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const meta = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name } };
    await api.client.create(TOPOLOGIES, meta);
    await api.client.patch(`${TOPOLOGIES}/${name}/status`, MERGE, { status });
  };
  const report = (cores: string[], options: object = {}) => ({
    cells: [{ id: 0, cpus: '0-7' }],
    cores,
    reserved: '',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    assignments: [],
    ...options,
  });
  const smt2 = ['0,4', '1,5', '2,6', '3,7'];
  const threadsFor = (spec: SelectingSpec) =>
    view
      .candidates(spec)
      .map(({ threadsPerCore }) => threadsPerCore)
      .sort();

  before(async () => {
    api = await startApi();
    await api.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'tenant' },
    });
    await addNode('a', { zone: 'a' }, report(smt2, { physnets: [{ name: 'east', cells: '0' }] }));
    await addNode('b', { zone: 'b' }, report(['0-3', '4-7'], { tunnel: { cells: '0' } }));
    await addNode('shared', { zone: 'shared' }, report(smt2, { cpuManager: { policy: 'none' }, reserved: '0' }));
    view = createClusterView(parseConfiguredContext({ bridgeMappings: 'east:br-east' }), {
      client: api.client,
      log: silent,
      now: () => performance.now() / 1000,
    });
    assert.match(String(view.problem), /^not synced yet: namespaces, network definitions, nodes, node reports, VMIs, /);
    void view.run(running.signal);
    await eventually(() => view.problem === undefined, 'the lists');
  });
  after(async () => {
    running.abort();
    await api.stop();
  });

  it('excludes nodes like kube-scheduler, by cordons and untolerated taints, but only if other nodes are left', async () => {
    const patchB = (spec: object) => api.client.patch('/api/v1/nodes/b', MERGE, { spec });
    const taint = { key: 'rack', value: 'x', effect: 'NoSchedule' };
    const tolerating = (...tolerations: SelectingSpec['tolerations'] & object) => threadsFor({ tolerations });

    await patchB({ unschedulable: true });
    await eventually(() => threadsFor({}).join() === '2', 'the cordon');
    assert.deepEqual(tolerating({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }), [2, 4]);
    assert.deepEqual(threadsFor({ nodeSelector: { zone: 'b' } }), [4], 'the only node that it may use');

    await patchB({ unschedulable: null, taints: [taint] });
    await eventually(() => tolerating({ key: 'rack', operator: 'Exists' }).length === 2, 'the taint');
    assert.deepEqual(tolerating({ key: 'rack', value: 'y' }), [2]);

    await patchB({ taints: [{ ...taint, effect: 'NoExecute' }] });
    await eventually(() => tolerating({ key: 'rack', value: 'x', effect: 'NoExecute' }).length === 2, 'NoExecute');
    assert.deepEqual(threadsFor({}), [2]);
    await patchB({ taints: [{ ...taint, effect: 'PreferNoSchedule' }] });
    await eventually(() => threadsFor({}).join() === '2,4', 'a preference, which excludes no pod');
  });

  it('finds the primary network of a labelled namespace', async () => {
    const config = { type: 'ovn-k8s-cni-overlay', topology: 'layer2', name: 'n', netAttachDefName: 'tenant/udn' };
    assert.deepEqual(view.primaryNetwork('tenant'), { kind: 'none' });
    await api.client.patch('/api/v1/namespaces/tenant', MERGE, {
      metadata: { labels: { 'k8s.ovn.org/primary-user-defined-network': '' } },
    });
    await eventually(() => view.primaryNetwork('tenant').kind === 'missing', 'the label');
    await api.client.create('/apis/k8s.cni.cncf.io/v1/namespaces/tenant/network-attachment-definitions', {
      apiVersion: 'k8s.cni.cncf.io/v1',
      kind: 'NetworkAttachmentDefinition',
      metadata: { name: 'udn', namespace: 'tenant' },
      spec: { config: JSON.stringify({ ...config, role: 'primary', subnets: '10.0.0.0/16' }) },
    });
    await eventually(() => view.primaryNetwork('tenant').kind === 'primary', 'the network');
  });
});
