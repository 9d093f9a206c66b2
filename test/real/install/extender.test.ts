import assert from 'node:assert/strict';
import type { KubeClient, KubeError } from '../../../kube/client.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { type Removal, removeUnstarted } from '../../../scheduler-plugin/controllers/evictions.ts';
import { deniedByPolicy, isDenied } from '../../support/denied.ts';
import { until } from '../../support/until.ts';
import { namespaceOf, onControlPlane, podOf } from '../control-plane-stage.ts';
import { installInterceptor } from '../virt-api-stage.ts';
import { bindingOf, installPolicies, type Policies } from '../webhook/policies-stage.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';
const DRY = { dryRun: 'All' };
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
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
/** KubeVirt lets such a launcher be evicted. */
const MIGRATES_NOT = { labels: LAUNCHER, annotations: {} };
const reader = new NeedsReader('all');

interface PodOptions {
  readonly labels?: object;
  readonly annotations?: object;
  readonly namespace?: string;
  readonly node?: string;
  readonly phase?: string;
}

describe('what the extender may write, on a real API server', function () {
  onControlPlane(this);
  let installed: Policies;
  let extender: KubeClient;
  let scheduler: KubeClient;
  let interceptor: Awaited<ReturnType<typeof installInterceptor>>;

  before(async () => {
    installed = await installPolicies({ components: ['scheduler/loopback'] });
    extender = await installed.account('plumbline-system', 'plumbline-scheduler-plugin');
    scheduler = await installed.account('plumbline-system', 'plumbline-scheduler');
    await installed.plane.create(
      namespaceOf('ovn-kubernetes'),
      bindingOf(
        { kind: 'ServiceAccount', name: 'plumbline-scheduler', namespace: 'plumbline-system' },
        'plumbline-scheduler-plugin',
        undefined,
      ),
    );
    interceptor = await installInterceptor(installed.plane);
    await createPod('virt-launcher-probe', { labels: LAUNCHER });
    const probe = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'virt-launcher-probe' } };
    await until('the interceptor to be asked', async () => {
      await installed.client
        .create(`${PODS}/virt-launcher-probe/eviction`, probe, { query: DRY })
        .catch(() => undefined);
      return interceptor.reviewed.length > 0;
    });
  });
  after(async () => {
    await interceptor?.stop();
    await installed?.stop();
  });

  const createPod = async (name: string, options: PodOptions) => {
    const { namespace = 'default', labels = {}, node = 'worker', phase = 'Pending' } = options;
    const { annotations = { 'kubevirt.io/domain': 'vm' } } = options;
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const amounts = { cpu: '4', memory: '64Mi' };
    const containers = [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }];
    const spec = { ...(node !== '' && { nodeName: node }), terminationGracePeriodSeconds: 0, containers };
    await installed.client.create(pods, podOf({ name, labels, annotations }, spec));
    if (phase !== 'Pending') await installed.client.patch(`${pods}/${name}/status`, MERGE, { status: { phase } });
  };
  const viewOf = async (name: string) =>
    podViewOf(observedPod.parse(await installed.client.get(`${PODS}/${name}`)), reader)!;
  const isThere = async (name: string, namespace = 'default') =>
    installed.client.get(`/api/v1/namespaces/${namespace}/pods/${name}`).then(
      (pod) => (pod as { metadata: { deletionTimestamp?: string } }).metadata.deletionTimestamp === undefined,
      () => false,
    );
  const remove = async (name: string): Promise<Removal> => removeUnstarted(extender, await viewOf(name));

  const removed: [string, PodOptions, string][] = [
    ['virt-launcher-vm', { labels: LAUNCHER }, 'deleted'],
    ['virt-launcher-target', { labels: { ...LAUNCHER, 'kubevirt.io/migrationJobUID': 'u' } }, 'deleted'],
    ['ordinary', {}, 'evicted'],
  ];
  for (const [name, options, outcome] of removed) {
    it(`${name}, which is bound and has not started, is ${outcome}`, async () => {
      await createPod(name, options);
      assert.deepEqual(await remove(name), { outcome });
      assert.equal(await isThere(name), false);
    });
  }

  it('a launcher that has started since the extender read it is kept', async () => {
    await createPod('virt-launcher-late', { labels: LAUNCHER });
    const before = await viewOf('virt-launcher-late');
    await installed.client.patch(`${PODS}/virt-launcher-late/status`, MERGE, { status: { phase: 'Running' } });
    // The policy denies it, or, while the API server's cache has the old phase, the precondition.
    const { outcome } = await removeUnstarted(extender, before);
    assert.match(outcome, /^(refused|changed)$/);
    assert.ok(await isThere('virt-launcher-late'));
  });

  const spared: [string, string, PodOptions][] = [
    ['a pod that is not a launcher', 'web', {}],
    ['a launcher that runs', 'virt-launcher-runs', { labels: LAUNCHER, phase: 'Running' }],
    ['a launcher without a node', 'virt-launcher-free', { labels: LAUNCHER, node: '' }],
    ['a launcher that has failed', 'virt-launcher-failed', { labels: LAUNCHER, phase: 'Failed' }],
  ];
  for (const [what, name, options] of spared) {
    it(`the extender cannot delete ${what} with its token`, async () => {
      await createPod(name, options);
      await assert.rejects(extender.delete(`${PODS}/${name}`), deniedByPolicy('plumbline-extender-pods'));
      assert.ok(await isThere(name));
    });
  }

  const notEvicted: [string, string, PodOptions][] = [
    ['a launcher that runs', 'virt-launcher-up', { ...MIGRATES_NOT, phase: 'Running' }],
    ['a pod that runs and is no launcher', 'web-up', { phase: 'Running' }],
    ['a launcher without a node', 'virt-launcher-waits', { ...MIGRATES_NOT, node: '' }],
    ['a pod of kube-system', 'dns', { namespace: 'kube-system' }],
    ['a pod of the network', 'ovnkube-node', { namespace: 'ovn-kubernetes' }],
    ['a pod of Plumbline', 'plumbline-webhook', { namespace: 'plumbline-system' }],
  ];
  for (const [what, name, options] of notEvicted) {
    it(`neither account of the extender can evict ${what}`, async () => {
      const { namespace = 'default' } = options;
      const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
      await createPod(name, options);
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      const policy = deniedByPolicy('plumbline-extender-evictions(-by-state)?');
      const evict = (account: KubeClient, query = {}) => account.create(`${path}/eviction`, eviction, { query });
      await until('the pod to be in the API server’s cache', () => isDenied(() => evict(extender, DRY), policy));
      for (const account of [extender, scheduler]) await assert.rejects(evict(account), policy);
      assert.ok(await isThere(name, namespace));
      await evict(installed.client, DRY);
    });
  }

  it('the extender cannot delete a collection of pods', async () => {
    await assert.rejects(extender.delete(PODS), /deletecollection|cannot delete/);
  });

  it('other accounts may still delete pods', async () => {
    await installed.client.delete(`${PODS}/web`);
    assert.equal(await isThere('web'), false);
  });

  /** S12: the extender's token may write what the extender writes on nodes, and nothing else. */
  describe('on nodes', () => {
    before(async () => {
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

    const node = async () => (await installed.client.get(NODE)) as SeenNode;
    const condition = (status: string, more: object = {}) => ({
      status: {
        conditions: ['plumbline.dev/AgentReady', 'plumbline.dev/DPUReady', 'plumbline.dev/DPURestarted'].map(
          (type) => ({
            type,
            status,
            reason: 'LeaseRenewed',
            message: 'alive',
            lastHeartbeatTime: '2026-11-01T10:00:00Z',
            lastTransitionTime: '2026-11-01T10:00:00Z',
          }),
        ),
        ...more,
      },
    });

    it('the extender may write its labels, its annotation and its conditions repeatedly', async () => {
      for (const [threads, status] of [
        ['2', 'True'],
        ['8', 'False'],
      ] as const) {
        const labels = { 'plumbline.dev/threads-per-core': threads, 'plumbline.dev/full-pcpus-only': 'true' };
        await scheduler.patch(NODE, MERGE, { metadata: { labels } });
        const annotations = { 'plumbline.dev/recheck': new Date().toISOString() };
        await scheduler.patch(NODE, MERGE, { metadata: { annotations } });
        await scheduler.patch(`${NODE}/status`, STRATEGIC, condition(status), QUERY);
        const { metadata, status: found } = await node();
        assert.deepEqual(metadata.labels, { 'kubernetes.io/os': 'linux', ...labels });
        assert.deepEqual(metadata.annotations, { note: 'x', ...annotations });
        assert.deepEqual(found.conditions.map((condition) => `${condition.type} ${condition.status}`).sort(), [
          'Ready True',
          `plumbline.dev/AgentReady ${status}`,
          `plumbline.dev/DPUReady ${status}`,
          `plumbline.dev/DPURestarted ${status}`,
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
        await assert.rejects(scheduler.patch(...call), (error: KubeError) => {
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
});
