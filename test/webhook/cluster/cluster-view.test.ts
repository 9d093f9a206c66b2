import assert from 'node:assert/strict';
import { cacheProblem, type Watches, type WatchOptions } from '../../../kube/reflector.ts';
import type { SelectingSpec } from '../../../model/launcher/node-selection.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../../model/names.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import {
  createClusterView,
  createNadCache,
  createNetworkContextCache,
  createVmiCache,
} from '../../../webhook/cluster/cluster-view.ts';
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

describe('a cache of a kind that may not be installed', () => {
  for (const [what, create, held] of [
    ['network definitions', createNadCache, NADS],
    ['Kube-OVN’s subnets', (options: WatchOptions) => createNetworkContextCache(EMPTY_CONTEXT, options), SUBNETS],
    ['Kube-OVN’s VLANs', (options: WatchOptions) => createNetworkContextCache(EMPTY_CONTEXT, options), VLANS],
    ['VMIs', createVmiCache, VMIS],
  ] as const)
    it(`${what}: is synced when this is known`, async () => {
      const lists = scriptedLists({}, [held]);
      const cache = await started(create(optionsOf(lists)));
      assert.match(String(cacheProblem(cache.watches, now)), /^not synced yet: /);
      await lists.release(held);
      assert.equal(cacheProblem(cache.watches, now), undefined);
    });
});

const MAIN = { type: 'ovn-k8s-cni-overlay', topology: 'layer2', name: 'n' };
const nad = (name: string, config: object = {}, namespace = 'tenant') => ({
  metadata: { name, namespace },
  spec: { config: JSON.stringify({ ...MAIN, netAttachDefName: `${namespace}/${name}`, ...config }) },
});
const primary = (name: string, namespace?: string) => nad(name, { role: 'primary', subnets: '10.0.0.0/16' }, namespace);

describe('the cache of network definitions', () => {
  it('knows the primary network of a namespace while there is one, whatever other definitions exist', async () => {
    const lists = scriptedLists({ [NADS]: [primary('a')] });
    const cache = await started(createNadCache(optionsOf(lists)));
    const expected = (name: string | undefined, when: string) =>
      assert.deepEqual(cache.primaryIn('tenant'), name && { namespace: 'tenant', name }, when);
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
    await lists.send(NADS, 'DELETED', primary('b'));
    expected(undefined, 'it is deleted');
    assert.equal(cache.primaryIn('other'), undefined);
  });

  it('keeps why a definition is refused', async () => {
    const cache = await started(createNadCache(optionsOf(scriptedLists({ [NADS]: [nad('c', { name: '' })] }))));
    const refusal = { by: 'OVN-Kubernetes', why: 'the name of the network is missing' };
    assert.deepEqual(cache.find({ namespace: 'tenant', name: 'c' })?.refusal, refusal);
    assert.equal(cache.find({ namespace: 'other', name: 'c' }), undefined);
  });
});

describe('the cluster view', () => {
  it('finds the primary network of a labelled namespace', async () => {
    const namespaces = ['tenant', 'bare'].map((name) => ({ metadata: { name } }));
    const lists = scriptedLists(
      { [NAMESPACES]: namespaces, [NADS]: [primary('a'), primary('b', 'other')], [NODES]: [], [REPORTS]: [] },
      [NADS],
    );
    const view = createClusterView(EMPTY_CONTEXT, { ...optionsOf(lists), onQuarantined: () => undefined });
    assert.match(String(view.problem), /^not synced yet: namespaces, network definitions, nodes, node reports, VMIs, /);
    void view.run(running.signal);
    await lists.release(NADS);
    assert.equal(view.problem, undefined);
    const { query } = lists.listCalls.find(({ path }) => path === NAMESPACES)!;
    assert.equal(query?.['labelSelector'], 'k8s.ovn.org/primary-user-defined-network');
    assert.deepEqual(['other', 'bare', 'tenant'].map(view.primaryNetwork), [
      { kind: 'none' },
      { kind: 'missing' },
      { kind: 'primary', ref: { namespace: 'tenant', name: 'a' } },
    ]);
  });
});

describe('the cache of Kube-OVN objects', () => {
  const subnet = (name: string, spec: object) => ({ metadata: { name }, spec });
  const LISTS = {
    [SUBNETS]: [
      subnet('own', { provider: 'ovn' }),
      subnet('bare', {}),
      subnet('far', { provider: 'p.ovn', vlan: 'v' }),
    ],
    [VLANS]: [subnet('v', { provider: 'east' }), subnet('w', {})],
  };

  it('has all subnets except those of the pod network, and all VLANs', async () => {
    const lists = scriptedLists(LISTS);
    const cache = await started(createNetworkContextCache(EMPTY_CONTEXT, optionsOf(lists)));
    const vlans = [
      { name: 'v', provider: 'east' },
      { name: 'w', provider: '' },
    ];
    const bare = { name: 'bare', provider: '' };
    const far = { name: 'far', provider: 'p.ovn', vlan: 'v' };
    assert.deepEqual(cache.current(), { ...EMPTY_CONTEXT, kubeOvnSubnets: [bare, far], kubeOvnVlans: vlans });
    assert.equal(cache.current(), cache.current(), 'computed once');
    await lists.send(SUBNETS, 'DELETED', subnet('bare', {}));
    assert.deepEqual(cache.current().kubeOvnSubnets, [far]);
    await lists.send(VLANS, 'DELETED', subnet('w', {}));
    assert.deepEqual(cache.current().kubeOvnVlans, vlans.slice(0, 1));
  });
});

describe('the cache of VMIs', () => {
  const resources = { requests: { cpu: '2', memory: '1Gi' }, limits: { memory: '1Gi' } };
  const spec = { domain: { cpu: { cores: 2 }, resources }, nodeSelector: { zone: 'a' } };

  it('keeps the uid, the annotations that Plumbline reads, and the part of the spec that defines launchers', async () => {
    const annotations = { [NUMA_AFFINITY_ANNOTATION]: '{}', other: 'x' };
    const metadata = { name: 'a', namespace: 'n', uid: '1', labels: { l: '1' }, annotations };
    const cache = await started(createVmiCache(optionsOf(scriptedLists({ [VMIS]: [{ metadata, spec }] as never }))));
    const vmi = cache.find('n', 'a');
    assert.deepEqual(vmi?.metadata, { uid: '1', annotations: { [NUMA_AFFINITY_ANNOTATION]: '{}' } });
    assert.equal(vmi.spec.domain.cpu?.cores, 2);
    assert.deepEqual(Object.keys(vmi.spec), ['domain', 'networks']);
    assert.deepEqual(vmi.spec.domain.resources, { limits: undefined, requests: { cpu: '2' } });
    assert.equal(cache.find('other', 'a'), undefined);
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
