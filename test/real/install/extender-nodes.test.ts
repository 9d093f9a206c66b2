import assert from 'node:assert/strict';
import type { KubeClient, KubeError } from '../../../kube/client.ts';
import { onControlPlane } from '../control-plane.ts';
import { installPolicies, type Policies } from '../webhook/policies-alone.ts';

const MERGE = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const NODE = '/api/v1/nodes/worker';
const QUERY = { query: { fieldManager: 'plumbline-scheduler-plugin' } };

interface SeenNode {
  readonly metadata: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    readonly managedFields: readonly { readonly manager: string }[];
  };
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

/** S12: the extender's token may write what the extender writes on nodes, and nothing else. */
describe('what the extender may write on nodes, on a real API server', function () {
  onControlPlane(this);
  let installed: Policies;
  let extender: KubeClient;

  before(async () => {
    installed = await installPolicies({});
    extender = await installed.account('plumbline-system', 'plumbline-scheduler');
    const { client, plane } = installed;
    await plane.create({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'worker',
        labels: { 'kubernetes.io/os': 'linux', 'plumbline.dev/threads-per-core': '4' },
        annotations: { note: 'x' },
        finalizers: ['example.org/kept'],
      },
      spec: { taints: [{ key: 'a', effect: 'NoSchedule' }], podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] },
    });
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    const times = { lastHeartbeatTime: now, lastTransitionTime: now };
    const status = {
      capacity: { cpu: '16', memory: '64Gi', pods: '110' },
      allocatable: { cpu: '15500m', memory: '63Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', ...times }],
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      nodeInfo: { kubeletVersion: 'v1.36.2' },
      images: [{ names: ['a'], sizeBytes: 7 }],
      volumesInUse: ['kubernetes.io/csi/a^b'],
    };
    await client.patch(`${NODE}/status`, MERGE, { status });
  });
  after(() => installed?.stop());

  const node = async () => (await installed.client.get(NODE)) as SeenNode;
  const condition = (status: string, more: object = {}) => ({
    status: {
      conditions: ['plumbline.dev/AgentReady', 'plumbline.dev/DPUReady'].map((type) => ({
        type,
        status,
        reason: 'LeaseRenewed',
        message: 'alive',
        lastHeartbeatTime: '2026-11-01T10:00:00Z',
        lastTransitionTime: '2026-11-01T10:00:00Z',
      })),
      ...more,
    },
  });

  it('the extender may write its labels, its annotation and its conditions repeatedly', async () => {
    for (const [threads, status] of [
      ['2', 'True'],
      ['8', 'False'],
    ] as const) {
      const labels = { 'plumbline.dev/threads-per-core': threads, 'plumbline.dev/full-pcpus-only': 'true' };
      await extender.patch(NODE, MERGE, { metadata: { labels } });
      const annotations = { 'plumbline.dev/recheck': new Date().toISOString() };
      await extender.patch(NODE, MERGE, { metadata: { annotations } });
      await extender.patch(`${NODE}/status`, STRATEGIC, condition(status), QUERY);
      const { metadata, status: found } = await node();
      assert.deepEqual(metadata.labels, { 'kubernetes.io/os': 'linux', ...labels });
      assert.deepEqual(metadata.annotations, { note: 'x', ...annotations });
      assert.deepEqual(found.conditions.map((one) => `${one.type} ${one.status}`).sort(), [
        'Ready True',
        `plumbline.dev/AgentReady ${status}`,
        `plumbline.dev/DPUReady ${status}`,
      ]);
    }
    const { managedFields } = (await node()).metadata;
    assert.ok(managedFields.some(({ manager }) => manager === 'plumbline-scheduler-plugin'));
  });

  const ready = { type: 'Ready', status: 'False', lastHeartbeatTime: null, lastTransitionTime: null };
  const mine = { type: 'Mine', status: 'True' };
  type Call = Parameters<KubeClient['patch']>;
  const metadata = (more: object): Call => [NODE, MERGE, { metadata: more }];
  const statusOf = (more: object): Call => [`${NODE}/status`, MERGE, { status: more }];
  const operation = (op: string, path: string, value: unknown): Call => [
    `${NODE}/status`,
    JSON_PATCH,
    [{ op, path: `/status/${path}`, value }],
  ];
  const serverSideApply: Call = [
    `${NODE}/status`,
    'application/apply-patch+yaml',
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' }, status: { conditions: [ready] } },
    { query: { ...QUERY.query, force: true } },
  ];
  const owners = [{ apiVersion: 'v1', kind: 'Node', name: 'other', uid: 'u' }];
  const forged: [string, Call, RegExp][] = [
    ['cordons a node', [NODE, MERGE, { spec: { unschedulable: true } }], /spec/],
    ['taints a node', [NODE, MERGE, { spec: { taints: [{ key: 'b', effect: 'NoExecute' }] } }], /spec/],
    ['adds a label', metadata({ labels: { a: 'b' } }), /labels/],
    ['adds another label of plumbline.dev', metadata({ labels: { 'plumbline.dev/other': '' } }), /labels/],
    ['changes a label', metadata({ labels: { 'kubernetes.io/os': 'windows' } }), /labels/],
    ['removes a label', metadata({ labels: { 'kubernetes.io/os': null } }), /labels/],
    ['adds an annotation', metadata({ annotations: { a: 'b' } }), /annotation/],
    ['changes an annotation', metadata({ annotations: { note: 'y' } }), /annotation/],
    ['adds a finalizer', metadata({ finalizers: ['example.org/kept', 'example.org/mine'] }), /metadata/],
    ['adds an owner to it', metadata({ ownerReferences: owners }), /metadata/],
    ['changes its allocatable', statusOf({ allocatable: { cpu: '1' } }), /status/],
    ['changes its capacity', statusOf({ capacity: { 'example.org/gpu': '8' } }), /status/],
    ['makes it NotReady', serverSideApply, /status/],
    ['adds another condition to it', operation('add', 'conditions/-', mine), /status/],
    ['changes its address', operation('replace', 'addresses/0/address', '192.0.2.66'), /status/],
    ['changes its version', statusOf({ nodeInfo: { kubeletVersion: 'v0' } }), /status/],
    ['changes its images', statusOf({ images: [] }), /status/],
    ['changes its port', statusOf({ daemonEndpoints: { kubeletEndpoint: { Port: 1 } } }), /status/],
    ['labels it through its status', [`${NODE}/status`, MERGE, { metadata: { labels: { a: 'b' } } }], /labels/],
  ];
  for (const [what, call, message] of forged) {
    it(`refuses an extender that ${what}`, async () => {
      const before = await node();
      await assert.rejects(extender.patch(...call), (error: KubeError) => {
        assert.equal(error.status, 403, error.message);
        assert.match(error.message, new RegExp(`the extender may .*${message.source}`));
        return true;
      });
      assert.deepEqual(await node(), before);
    });
  }

  it('other accounts may still write nodes', async () => {
    await installed.client.patch(NODE, MERGE, { spec: { unschedulable: true }, metadata: { labels: { a: 'b' } } });
  });
});
