import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { createNeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { type Removal, removePod } from '../../../scheduler-plugin/controllers/removal.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type EvictionInterceptor, installInterceptor } from '../scheduler/eviction-interceptor.ts';
import { installPolicies, type Policies } from '../webhook/policies-alone.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
const reader = createNeedsReader('all');

interface PodOptions {
  readonly labels?: object;
  readonly node?: string;
  readonly phase?: string;
}

describe('which pods the extender may remove, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let installed: Policies;
  let extender: KubeClient;
  let interceptor: EvictionInterceptor;

  before(async () => {
    installed = await installPolicies({ components: ['scheduler/loopback'] });
    extender = await installed.account('plumbline-system', 'plumbline-scheduler-plugin');
    interceptor = await installInterceptor(installed.plane);
    await createPod('virt-launcher-probe', { labels: LAUNCHER });
    const probe = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'virt-launcher-probe' } };
    await until('the interceptor to be asked', async () => {
      const query = { dryRun: 'All' };
      await installed.client.create(`${PODS}/virt-launcher-probe/eviction`, probe, { query }).catch(() => undefined);
      return interceptor.asked.length > 0;
    });
  });
  after(async () => {
    await interceptor?.stop();
    await installed?.stop();
  });

  const createPod = async (name: string, { labels = {}, node = 'worker', phase = 'Pending' }: PodOptions) => {
    const amounts = { cpu: '4', memory: '64Mi' };
    await installed.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels, annotations: { 'kubevirt.io/domain': 'vm' } },
      spec: {
        ...(node !== '' && { nodeName: node }),
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } }],
      },
    });
    if (phase !== 'Pending') await installed.client.patch(`${PODS}/${name}/status`, MERGE, { status: { phase } });
  };
  const viewOf = async (name: string) =>
    podViewOf(observedPod.parse(await installed.client.get(`${PODS}/${name}`)), reader)!;
  const isThere = async (name: string) =>
    installed.client.get(`${PODS}/${name}`).then(
      (pod) => (pod as { metadata: { deletionTimestamp?: string } }).metadata.deletionTimestamp === undefined,
      () => false,
    );
  const remove = async (name: string): Promise<Removal> => removePod(extender, await viewOf(name));

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
    assert.deepEqual(await removePod(extender, before), { outcome: 'changed' });
    assert.ok(await isThere('virt-launcher-late'));
  });

  it('a pod that a disruption budget protects is kept, because that is not a denial by KubeVirt', async () => {
    await createPod('budgeted', { labels: { app: 'budgeted', ...LAUNCHER }, phase: 'Running' });
    await installed.client.create('/apis/policy/v1/namespaces/default/poddisruptionbudgets', {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'budget' },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'budgeted' } } },
    });
    const { outcome, error } = await removePod(extender, { ...(await viewOf('budgeted')), pending: true });
    assert.equal(outcome, 'refused');
    assert.match((error as Error).message, /429 TooManyRequests: Cannot evict pod/);
    assert.ok(await isThere('budgeted'));
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

  it('the extender cannot delete a collection of pods', async () => {
    await assert.rejects(extender.delete(PODS), /deletecollection|cannot delete/);
  });

  it('other accounts may still delete pods', async () => {
    await installed.client.delete(`${PODS}/web`);
    assert.equal(await isThere('web'), false);
  });
});
