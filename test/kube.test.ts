import assert from 'node:assert/strict';
import type { KubeClient } from '../kube/client.ts';
import { NODE_TOPOLOGY_API, nodeTopology } from '../kube/node-topology.ts';
import { type Change, createReflector } from '../kube/reflector.ts';
import { lease, node, objectMeta, pod } from '../kube/resources.ts';
import { virtualMachine } from '../kube/virtual-machines.ts';
import { issuesText } from '../model/errors.ts';
import { monotonicSeconds } from '../runtime/time.ts';
import { startApi } from './kube/api-fixture.ts';
import { eventually } from './support/eventually.ts';
import { recordingLogger, silent } from './support/logger.ts';

const NODES = '/api/v1/nodes';
const nodeObject = (name: string, labels: Record<string, string> = {}) => {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } };
};
describe('a reflector', () => {
  it('lists in pages, watches, and resumes after the server was down without missing a change', async () => {
    const api = await startApi({ history: 20, bookmarkSeconds: 0.2 });
    const running = new AbortController();
    const { log, lines } = recordingLogger();
    const changes: Change<string>[] = [];
    for (let i = 0; i < 503; i++) await api.client.create(NODES, nodeObject(`n${i}`));
    const reflector = createReflector({
      client: api.client,
      path: NODES,
      schema: node,
      project: ({ metadata }) => metadata.labels?.['color'] ?? '',
      onChange: (change) => changes.push(change),
      log,
      nowSeconds: monotonicSeconds,
    });
    void reflector.run(running.signal);
    await reflector.whenSynced;
    assert.equal(reflector.items.size, 503);
    await api.client.create(NODES, nodeObject('late', { color: 'red' }));
    await eventually(() => reflector.items.get('late') === 'red', 'the new node');
    const blue = { metadata: { labels: { color: 'blue' } } };
    await api.client.patch(`${NODES}/late`, 'application/merge-patch+json', blue);
    await eventually(() => reflector.items.get('late') === 'blue', 'the change');
    await api.client.delete(`${NODES}/late`);
    await eventually(() => !reflector.items.has('late'), 'the deletion');
    const ofLate = changes.filter(({ key }) => key === 'late').map(({ before, after }) => `${before} ${after}`);
    assert.deepEqual(ofLate, ['undefined red', 'red blue', 'blue undefined']);

    await api.server.stop();
    await eventually(() => lines.some(({ msg }) => msg === 'waiting to list or watch again'), 'a failed attempt');
    assert.ok(reflector.items.has('n0'), 'the last copy stays');
    await api.server.start();
    // More changes than the server remembers: the old version has expired, and a new list must find them.
    for (let i = 0; i < 40; i++) await api.client.create(NODES, nodeObject(`more-${i}`));
    await api.client.delete(`${NODES}/n0`);
    await eventually(() => reflector.items.size === 542 && !reflector.items.has('n0'), 'the new list');
    running.abort();
    await api.stop();
  }).timeout(300_000);
});
describe('a reflector of many objects', () => {
  it('processes thousands of them in slices', async () => {
    const items = Array.from({ length: 5000 }, (_, i) => ({ metadata: { name: `n${i}`, resourceVersion: '1' } }));
    const client = {
      get: async () => ({ metadata: { resourceVersion: '9' }, items }),
      watch: () => new Promise(() => undefined),
    } as unknown as KubeClient;
    let turns = 0;
    let ended = false;
    const turn = () => {
      turns++;
      if (!ended) setImmediate(turn);
    };
    setImmediate(turn);
    const reflector = createReflector({
      client,
      path: NODES,
      schema: node,
      project: ({ metadata }) => metadata.name ?? '',
      onChange: () => {
        const until = performance.now() + 0.02;
        while (performance.now() < until);
      },
      log: silent,
      nowSeconds: monotonicSeconds,
    });
    void reflector.run(AbortSignal.timeout(60_000));
    await reflector.whenSynced;
    ended = true;
    assert.ok(turns >= 8, `others had ${turns} turns`);
  });
});

const containers = [{ name: 'compute' }];
describe('schemas of API objects', () => {
  it('treat null, as Go writes it, as absent', () => {
    const absent = { labels: undefined, annotations: undefined, ownerReferences: undefined };
    assert.deepEqual(objectMeta.parse({ labels: null, annotations: null, ownerReferences: null }), absent);
    assert.deepEqual(lease.parse({ metadata: {}, spec: { holderIdentity: null } }).spec, { holderIdentity: undefined });
    assert.equal(lease.parse({ metadata: {}, spec: null }).spec, undefined);
    assert.equal(node.parse({ metadata: {}, spec: null, status: null }).status, undefined);
  });

  it('keep only annotations that are read, and of some only that they are there', () => {
    const annotations = {
      'plumbline.dev/align': 'whole-cores',
      'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': 'x'.repeat(250_000),
      'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(250_000),
      'k8s.ovn.org/dpu.connection-status': 'x'.repeat(250_000),
    };
    assert.deepEqual(objectMeta.parse({ annotations }).annotations, {
      'plumbline.dev/align': 'whole-cores',
      'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': '',
      'k8s.ovn.org/dpu.connection-status': undefined,
    });
  });

  const many = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`);
  const requirement = (values: readonly string[]) => ({ key: 'k', operator: 'In', values });
  const required = (...terms: object[]) => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  });
  const owner = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name, uid: 'u' });
  const ownedBy = (name: string) => ({ metadata: { ownerReferences: [owner(name)] } });
  const masked = { metadata: { annotations: { 'plumbline.dev/cpu-mask': 'x'.repeat(16_385) } } };
  const manyTerms = many(2).map(() => ({ matchExpressions: many(129).map(() => requirement([])) }));
  const manyValues = { matchExpressions: many(2).map(() => requirement(many(2049))) };
  for (const [field, { metadata = {}, ...spec }, limit] of [
    ['metadata.ownerReferences.0.name', ownedBy('x'.repeat(254)), 'longer than 253 characters'],
    ['metadata.ownerReferences.0.name', ownedBy('\ud800'), 'contains half a surrogate pair'],
    ['metadata.annotations.plumbline.dev/cpu-mask', masked, 'longer than 16384 characters'],
    ['spec.containers', { containers: many(513).map((name) => ({ name })) }, 'more than 512 items'],
    ['spec.affinity.nodeAffinity', { affinity: required(...manyTerms) }, 'more than 256 requirements'],
    ['spec.affinity.nodeAffinity', { affinity: required(manyValues) }, 'more than 4096 values'],
  ] as [string, Record<string, object>, string][]) {
    it(`name the field and the limit for too long or too many: ${field}: ${limit}`, () => {
      const { error } = pod.safeParse({ metadata, spec: { containers, ...spec } });
      assert.equal(error && issuesText(error), `${field}: ${limit}`);
    });
  }

  it('cut a message of another component', () => {
    const status = { message: 'm'.repeat(1_000_000), reason: 'r'.repeat(1_000_000) };
    const read = pod.parse({ metadata: {}, spec: { containers }, status }).status;
    assert.deepEqual([read?.message?.length, read?.reason?.length], [1024, 253]);
  });

  it('keep every label, whatever its key', () => {
    const labels = { a: '1', b: '', constructor: 'x', toString: 'y' };
    assert.deepEqual(objectMeta.parse({ labels }).labels, labels);
    const most = Object.fromEntries(many(5000).map((key) => [key, '']));
    const cut = objectMeta.parse({ labels: { ...most, ['x'.repeat(318)]: '', 'kubevirt.io': 'virt-launcher' } }).labels;
    assert.deepEqual([Object.keys(cut ?? {}).length, cut?.['kubevirt.io']], [1024, 'virt-launcher']);
  });

  it('accept a number as an amount', () => {
    const parsed = node.parse({ metadata: {}, status: { capacity: { cpu: 2, memory: '1Gi' } } });
    assert.deepEqual(parsed.status?.capacity, { cpu: '2', memory: '1Gi' });
  });

  it('name the field of a wrong type', () => {
    const { error } = pod.safeParse({ metadata: { labels: { a: 'x', b: 2 } }, spec: { containers } });
    assert.equal(issuesText(error!), 'metadata.labels.b: expected string, received number');
    const { error: ofAmount } = node.safeParse({ metadata: {}, status: { capacity: { cpu: {} } } });
    assert.equal(issuesText(ofAmount!), 'status.capacity.cpu: expected a quantity, such as "2"');
  });

  it('ignore preferences and tolerations of an unknown shape', () => {
    const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ preference: 7 }] } };
    const { spec } = pod.parse({ metadata: {}, spec: { containers, affinity } });
    assert.deepEqual(spec.affinity, { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: undefined } });
    const template = (metadata: unknown) =>
      virtualMachine.parse({ metadata: {}, spec: { template: { metadata, spec: { domain: {}, tolerations: 7 } } } })
        .spec.template;
    assert.equal(template({}).spec.tolerations, undefined);
    assert.equal(template(null).metadata, undefined);
    assert.deepEqual(template({ name: 'vm' }).metadata, { name: 'vm' });
  });
});
describe('a NodeTopology', () => {
  const { apiVersion, kind } = NODE_TOPOLOGY_API;
  const object = { apiVersion, kind, metadata: { name: 'n1' } };
  const [cells, cores] = [[{ id: 0, cpus: '0-3' }], ['0,2', '1,3']];
  const status = { cells, cores, reserved: '0', cpuManager: { policy: 'static' }, assignments: [] };

  it('may have no status yet', () => {
    assert.deepEqual(nodeTopology.parse(object), object);
    assert.deepEqual(nodeTopology.parse({ ...object, status: null }), object);
  });

  it('has its status in format 1, also if it names no format', () => {
    for (const read of [status, { ...status, format: 1 }]) {
      assert.deepEqual(nodeTopology.parse({ ...object, status: read }), { ...object, status: read });
    }
  });

  it('keeps the reason if its status cannot be read', () => {
    const { status: none, unread } = nodeTopology.parse({ ...object, status: { ...status, format: 2 } });
    assert.equal(none, undefined);
    assert.match(unread ?? '', /has format .?2.?, and this version of Plumbline reads format 1/);
    assert.match(nodeTopology.parse({ ...object, status: 'text' }).unread ?? '', /\S/);
  });
});
