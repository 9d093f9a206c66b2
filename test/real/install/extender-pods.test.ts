import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { type Removal, removeUnstarted } from '../../../scheduler-plugin/controllers/evictions.ts';
import { deniedByPolicy, isDenied } from '../../support/denied.ts';
import { until } from '../../support/until.ts';
import { namespaceOf, onControlPlane, podOf } from '../control-plane.ts';
import { installInterceptor } from '../virt-api.ts';
import { bindingOf, installPolicies, type Policies } from '../webhook/policies-alone.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';
const DRY = { dryRun: 'All' };
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

describe('which pods the extender may remove, on a real API server', function () {
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
});
