import assert from 'node:assert/strict';
import type { Watches, WatchOptions } from '../../../kube/reflector.ts';
import type { SelectingSpec } from '../../../model/launcher/node-selection.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../../model/names.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { createClusterView } from '../../../webhook/cluster/cluster-view.ts';
import { createNodeCache } from '../../../webhook/cluster/node-cache.ts';
import { type ScriptedLists, scriptedLists, settle } from '../../kube/scripted-api-stand-in.ts';
import { silent } from '../../support/logger.ts';

const NAMESPACES = '/api/v1/namespaces';
const NADS = '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions';
const SUBNETS = '/apis/kubeovn.io/v1/subnets';
const VLANS = '/apis/kubeovn.io/v1/vlans';
const VMIS = '/apis/kubevirt.io/v1/virtualmachineinstances';
const NODES = '/api/v1/nodes';
const REPORTS = '/apis/plumbline.dev/v1alpha1/nodetopologies';

let now = 1000;
let running = new AbortController();

beforeEach(() => {
  now = 1000;
  running = new AbortController();
});
afterEach(() => running.abort());

const optionsOf = ({ client }: ScriptedLists): WatchOptions => ({ client, log: silent, nowSeconds: () => now });

async function started<C extends { watches: Watches }>(cache: C): Promise<C> {
  for (const watch of Object.values(cache.watches)) void watch.run(running.signal);
  await settle();
  return cache;
}

/** A view of a cluster with these lists. @param held those that wait until they are released */
async function stageView(listed: Parameters<typeof scriptedLists>[0], held: string[] = []) {
  const lists = scriptedLists({ [NAMESPACES]: [], [NODES]: [], [REPORTS]: [], ...listed }, held);
  const view = createClusterView(EMPTY_CONTEXT, { ...optionsOf(lists), onQuarantined: () => undefined });
  void view.run(running.signal);
  await settle();
  return { lists, view };
}

const MAIN = { type: 'ovn-k8s-cni-overlay', topology: 'layer2', name: 'n' };
const nad = (name: string, config: object = {}, namespace = 'tenant') => ({
  metadata: { name, namespace },
  spec: { config: JSON.stringify({ ...MAIN, netAttachDefName: `${namespace}/${name}`, ...config }) },
});
const primary = (name: string, namespace?: string) => nad(name, { role: 'primary', subnets: '10.0.0.0/16' }, namespace);

const labelled = (name: string) => ({ metadata: { name } });

describe('the cluster view', () => {
  for (const [kind, path] of [
    ['network definitions', NADS],
    ['Kube-OVN subnets', SUBNETS],
    ['Kube-OVN VLANs', VLANS],
    ['VMIs', VMIS],
  ] as const)
    it(`knows when ${kind} are not installed`, async () => {
      const { lists, view } = await stageView({}, [path]);
      assert.equal(view.problem, `not synced yet: ${kind}`);
      await lists.release(path);
      assert.equal(view.problem, undefined);
    });

  it('finds the primary networks of labelled namespaces', async () => {
    const definitions = [primary('a'), primary('b', 'other')];
    const { lists, view } = await stageView({ [NAMESPACES]: ['tenant', 'bare'].map(labelled), [NADS]: definitions });
    const { query } = lists.listCalls.find(({ path }) => path === NAMESPACES)!;
    assert.equal(query?.['labelSelector'], 'k8s.ovn.org/primary-user-defined-network');
    assert.deepEqual(['other', 'bare', 'tenant'].map(view.primaryNetwork), [
      { kind: 'none' },
      { kind: 'missing' },
      { kind: 'primary', ref: { namespace: 'tenant', name: 'a' } },
    ]);
  });

  it('knows the primary network of a namespace while there is one, whatever other definitions exist', async () => {
    const { lists, view } = await stageView({ [NAMESPACES]: [labelled('tenant')], [NADS]: [primary('a')] });
    const expected = (name: string | undefined, when: string) => {
      const network =
        name === undefined ? { kind: 'missing' } : { kind: 'primary', ref: { namespace: 'tenant', name } };
      assert.deepEqual(view.primaryNetwork('tenant'), network, when);
    };
    expected('a', 'listed');
    for (const type of ['ADDED', 'DELETED'] as const) await lists.send(NADS, type, nad('plain'));
    expected('a', 'another definition is added and deleted');
    await lists.send(NADS, 'ADDED', primary('b'));
    await lists.send(NADS, 'DELETED', primary('a'));
    expected('b', 'one of two is deleted');
    await lists.send(NADS, 'MODIFIED', nad('b'));
    expected(undefined, 'it is no longer the primary network');
    await lists.send(NADS, 'MODIFIED', primary('b'));
    expected('b', 'it is the primary network again');
  });

  it('keeps why a definition is refused', async () => {
    const { view } = await stageView({ [NADS]: [nad('c', { name: '' })] });
    const refusal = { by: 'OVN-Kubernetes', why: 'the name of the network is missing' };
    assert.deepEqual(view.findNad({ namespace: 'tenant', name: 'c' })?.refusal, refusal);
    assert.equal(view.findNad({ namespace: 'other', name: 'c' }), undefined);
  });

  it('has all subnets of Kube-OVN except those of the pod network, and all VLANs', async () => {
    const named = (name: string, spec: object) => ({ metadata: { name }, spec });
    const { lists, view } = await stageView({
      [SUBNETS]: [named('own', { provider: 'ovn' }), named('bare', {}), named('far', { provider: 'p.ovn', vlan: 'v' })],
      [VLANS]: [named('v', { provider: 'east' }), named('w', {})],
    });
    const vlans = [
      { name: 'v', provider: 'east' },
      { name: 'w', provider: '' },
    ];
    const bare = { name: 'bare', provider: '' };
    const far = { name: 'far', provider: 'p.ovn', vlan: 'v' };
    const { networkContext } = view;
    assert.deepEqual(networkContext(), { ...EMPTY_CONTEXT, kubeOvnSubnets: [bare, far], kubeOvnVlans: vlans });
    assert.equal(networkContext(), networkContext(), 'computed once');
    await lists.send(SUBNETS, 'DELETED', named('bare', {}));
    assert.deepEqual(networkContext().kubeOvnSubnets, [far]);
    await lists.send(VLANS, 'DELETED', named('w', {}));
    assert.deepEqual(networkContext().kubeOvnVlans, vlans.slice(0, 1));
  });

  it('keeps of a VMI its uid, the annotations that Plumbline reads, and what defines its launchers', async () => {
    const resources = { requests: { cpu: '2', memory: '1Gi' }, limits: { memory: '1Gi' } };
    const spec = { domain: { cpu: { cores: 2 }, resources }, nodeSelector: { zone: 'a' } };
    const annotations = { [NUMA_AFFINITY_ANNOTATION]: '{}', other: 'x' };
    const metadata = { name: 'a', namespace: 'n', uid: '1', labels: { l: '1' }, annotations };
    const { view } = await stageView({ [VMIS]: [{ metadata, spec }] });
    const vmi = view.findVmi('n', 'a');
    assert.deepEqual(vmi?.metadata, { uid: '1', annotations: { [NUMA_AFFINITY_ANNOTATION]: '{}' } });
    assert.equal(vmi.spec.domain.cpu?.cores, 2);
    assert.deepEqual(Object.keys(vmi.spec), ['domain', 'networks']);
    assert.deepEqual(vmi.spec.domain.resources, { limits: undefined, requests: { cpu: '2' } });
    assert.equal(view.findVmi('other', 'a'), undefined);
  });
});

describe('the cache of nodes', () => {
  const NETWORK = 'physnet.plumbline.dev/east';
  const nodeOf = (name: string, { labels = {}, capacity = {}, ...spec }: Record<string, object> = {}) => ({
    metadata: { name, labels: { 'kubernetes.io/arch': 'amd64', ...labels } },
    spec,
    status: { capacity: { cpu: '8', [NETWORK]: '1', ...capacity } },
  });
  const reportOf = (name: string, more: object = {}) => ({
    metadata: { name },
    status: {
      cells: [{ id: 0, cpus: '0-7' }],
      cores: ['0,4', '1,5', '2,6', '3,7'],
      reserved: '',
      cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
      physnets: [{ name: 'east', cells: '0' }],
      assignments: [],
      ...more,
    },
  });
  const stage = async (nodes = [nodeOf('a')], reports = [reportOf('a')]) => {
    const lists = scriptedLists({ [NODES]: nodes, [REPORTS]: reports });
    let quarantined: ReadonlyMap<string, { readonly code: string }> = new Map();
    const onQuarantined = (faults: typeof quarantined) => {
      quarantined = faults;
    };
    const cache = await started(createNodeCache({ ...optionsOf(lists), onQuarantined }));
    return { lists, cache, faults: () => [...quarantined].map(([node, { code }]) => `${node} ${code}`) };
  };
  const zoned = (zone: string): SelectingSpec => ({ nodeSelector: { zone } });

  it('computes the facts about nodes once: heartbeats do not change them', async () => {
    const { lists, cache } = await stage();
    const [all, networks] = [cache.kinds(), cache.reportedNetworks()];
    await lists.send(NODES, 'MODIFIED', nodeOf('a'));
    await lists.send(REPORTS, 'MODIFIED', reportOf('a', { assignments: [] }));
    assert.equal(cache.kinds(), all);
    assert.equal(cache.reportedNetworks(), networks);
  });

  it('knows the devices that a kubelet still has after its report was deleted', async () => {
    const { lists, cache } = await stage();
    const networks = () => {
      const { physnets, devices } = cache.reportedNetworks();
      return [physnets.has('east'), devices?.has(NETWORK)];
    };
    assert.deepEqual(networks(), [true, true]);
    await lists.send(REPORTS, 'DELETED', reportOf('a'));
    assert.deepEqual(networks(), [false, true]);
    await lists.send(NODES, 'MODIFIED', { ...nodeOf('a'), status: { capacity: { cpu: '8' } } });
    assert.deepEqual(networks(), [false, false]);
  });

  const changes: [string, object][] = [
    ['its labels', nodeOf('a', { labels: { zone: 'b' } })],
    ['its taints', nodeOf('a', { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] })],
    ['its CPUs', nodeOf('a', { capacity: { cpu: '16' } })],
    ['its architecture', nodeOf('a', { labels: { 'kubernetes.io/arch': 'arm64' } })],
    ['its networks', nodeOf('a', { capacity: { 'physnet.plumbline.dev/west': '1' } })],
  ];
  for (const [what, changed] of changes)
    it(`computes the facts about nodes again when a node changes ${what}`, async () => {
      const { lists, cache } = await stage();
      const [all, networks] = [cache.kinds(), cache.reportedNetworks()];
      await lists.send(NODES, 'MODIFIED', changed);
      assert.notEqual(cache.kinds(), all);
      assert.notEqual(cache.reportedNetworks(), networks);
    });

  it('shows whether all KubeVirt nodes that a spec may use have reported', async () => {
    const inOwnZone = (zone: string, schedulable = 'true') =>
      nodeOf(zone, { labels: { 'kubevirt.io/schedulable': schedulable, zone } });
    const { lists, cache } = await stage([inOwnZone('a'), inOwnZone('b'), inOwnZone('c', 'false')]);
    const answers = () => ['a', 'b', 'c'].map((zone) => cache.allReport(zoned(zone)));
    assert.deepEqual(answers(), [true, false, true]);
    assert.equal(cache.allReport({}), false);
    await lists.send(REPORTS, 'ADDED', reportOf('b'));
    assert.deepEqual([...answers(), cache.allReport({})], [true, true, true, true]);
  });

  it('has one kind and one set of CPUs for equal nodes, and separate ones for different nodes', async () => {
    const four = { cores: ['0-3', '4-7'] };
    const { lists, cache } = await stage(
      [
        nodeOf('a', { labels: { zone: 'x' } }),
        nodeOf('b', { labels: { zone: 'y' } }),
        nodeOf('c', { labels: { 'kubernetes.io/arch': 'ppc64le' } }),
      ],
      [reportOf('a'), reportOf('b'), reportOf('c', four), reportOf('unknown')],
    );
    const threads = (spec: SelectingSpec = {}) => cache.candidates(spec).map(({ threadsPerCore }) => threadsPerCore);
    assert.deepEqual(threads(), [2, 4]);
    assert.equal(cache.kinds().filter(({ threadsPerCore }) => threadsPerCore === 2).length, 1, 'shared');
    assert.deepEqual(threads(zoned('y')), [2]);
    assert.deepEqual(threads(zoned('z')), []);
    assert.equal(cache.maskHosts({}).length, 2);
    assert.equal(cache.maskHosts(zoned('y')).length, 1);
    await lists.send(REPORTS, 'DELETED', reportOf('c'));
    assert.deepEqual(threads(), [2]);
    assert.equal(cache.maskHosts({}).length, 1);
    await lists.send(NODES, 'DELETED', nodeOf('a'));
    await lists.send(NODES, 'DELETED', nodeOf('b'));
    assert.deepEqual(threads(), []);
  });

  it('excludes nodes by cordons and untolerated taints, but only if other nodes are left', async () => {
    const labels = { zone: 'b', 'kubernetes.io/arch': 'ppc64le' };
    const { lists, cache } = await stage(
      [nodeOf('a'), nodeOf('b', { labels })],
      [reportOf('a'), reportOf('b', { cores: ['0-3', '4-7'] })],
    );
    const threads = (spec: SelectingSpec = {}) => cache.candidates(spec).map(({ threadsPerCore }) => threadsPerCore);
    const tolerating = (key: string) => threads({ tolerations: [{ key, operator: 'Exists' }] });
    const change = (spec: Record<string, unknown>) =>
      lists.send(NODES, 'MODIFIED', { ...nodeOf('b', { labels }), spec });
    await change({ unschedulable: true });
    assert.deepEqual([threads(), tolerating('node.kubernetes.io/unschedulable')], [[2], [2, 4]]);
    assert.deepEqual(threads(zoned('b')), [4], 'the only node that it may use');
    await change({ taints: [{ key: 'rack', value: 'x', effect: 'NoExecute' }] });
    assert.deepEqual([threads(), tolerating('rack')], [[2], [2, 4]]);
    await change({ taints: [{ key: 'rack', value: 'x', effect: 'PreferNoSchedule' }] });
    assert.deepEqual(threads(), [2, 4]);
  });

  for (const [what, node, lie, code] of [
    ['more CPUs than its Node', 'b', { cells: [{ id: 0, cpus: '0-15' }], cores: ['0-7', '8-15'] }, 'more-cpus'],
    ['eight threads per core', 'b', { cores: ['0-7'] }, 'threads-per-core'],
  ] as const)
    it(`ignores a report while it has ${what}`, async () => {
      const { lists, cache, faults } = await stage([nodeOf('a'), nodeOf('b')], [reportOf('a'), reportOf('b')]);
      const threads = () => cache.kinds().map(({ threadsPerCore }) => threadsPerCore);
      assert.deepEqual([threads(), faults()], [[2], []]);
      await lists.send(REPORTS, 'MODIFIED', reportOf(node, lie));
      assert.deepEqual([threads(), faults()], [[2], [`${node} ${code}`]]);
      await lists.send(REPORTS, 'MODIFIED', reportOf(node));
      assert.deepEqual([threads(), faults()], [[2], []]);
    });

  it('has the networks that a node reports and its kubelet advertises', async () => {
    const tunnel = { tunnel: { cells: '0' } };
    const { cache } = await stage(
      [nodeOf('a'), nodeOf('b')],
      [reportOf('a'), reportOf('b', { physnets: [{ name: 'west', cells: '0' }], ...tunnel })],
    );
    const { physnets, tunnel: hasTunnel } = cache.reportedNetworks();
    assert.deepEqual([physnets, hasTunnel], [new Set(['east']), false]);
  });
});
