import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { createKubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { EVENTS, NODE_TOPOLOGIES } from '../../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../../sandbox/objects.ts';
import { machineCpus } from '../../../sandbox/qemu/guests.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { removeUnstarted } from '../../../scheduler-plugin/controllers/evictions.ts';
import { machine, PATIENCE } from '../machines.ts';
import { type Cases, PINNING_NODE } from '../stage.ts';

/** Running VMs: resumed, evicted or left alone. */
export const runningCases: Cases = (stage) => {
  describe('running VMs', () => {
    it('a VM with a CPU mask starts paused, is pinned, and is resumed by the extender through the real virt-api', async () => {
      const { client, cluster, create, untilPhase, vmi, remove } = stage();
      const report = cluster.client.get(NODE_TOPOLOGIES, undefined, PINNING_NODE);
      assert.ok(report !== undefined);
      const [cpu = 0] = await machineCpus();
      const spec = { nodeSelector: { 'kubernetes.io/hostname': PINNING_NODE } };
      const vm = machine('masked', { annotations: { 'plumbline.dev/cpu-mask': String(cpu) }, cpu: { cores: 1 }, spec });
      await create(vm);
      await untilPhase('masked', 'Running');
      await until('the extender to resume it', PATIENCE, () =>
        cluster.client.list(EVENTS).find(({ reason }) => reason === 'ResumedAfterPinning'),
      );
      const paused = () => vmi('masked')?.status?.conditions?.some(({ type }) => type === 'Paused');
      await until('the guest to run', PATIENCE, () => paused() === false || undefined);
      // A second request is refused, because it is no longer paused. The check is about the accepted type, so 409 and
      // not 406.
      const path = '/apis/subresources.kubevirt.io/v1/namespaces/vms/virtualmachineinstances/masked/unpause';
      await assert.rejects(client.replace(path, {}), /409 Conflict: .*VMI is not paused/);
      await remove(vm);
    });

    it('an eviction of a launcher that never started is denied for LiveMigrate, and the extender deletes the launcher instead', async () => {
      const { client, cluster, create, launcher, remove } = stage();
      const spec = { evictionStrategy: 'LiveMigrate', nodeSelector: { 'kubernetes.io/hostname': 'nowhere' } };
      const vm = machine('waits', { spec });
      await create(vm);
      const pod = await launcher('waits');
      const token = await cluster.plane.serviceAccountToken('plumbline-system', 'plumbline-scheduler');
      const extender = createKubeClient(kubeconfigAccess(await cluster.plane.kubeconfig('evicts', token)), 'evicts');
      const { name, uid = '', namespace = '' } = pod.metadata;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      // The policies allow the extender only evictions of pods that have a node, which here does not exist.
      const target = { apiVersion: 'v1', kind: 'Node', name: 'nowhere' };
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
      await client.create(`/api/v1/namespaces/vms/pods/${name}/binding`, binding);
      // They read the pod from a cache, which may not have its node yet.
      const answer = await until('an answer from KubeVirt', PATIENCE, async () => {
        const path = `/api/v1/namespaces/vms/pods/${name}/eviction`;
        const text = await extender.create(path, eviction).then(() => 'accepted', String);
        return text.includes('403 Forbidden') ? undefined : text;
      });
      assert.match(
        answer,
        /429 .*virt-launcher-eviction-interceptor.kubevirt.io" denied the request: VMI waits is configured with an eviction strategy but is not live-migratable/,
      );
      // As the extender does: it retries with the new state of the pod if that has changed in the meantime.
      const outcome = await until('the extender to remove it', PATIENCE, async () => {
        const now = (await client.get(`/api/v1/namespaces/vms/pods/${name}`)) as KubePod;
        const version = String(now.metadata.resourceVersion);
        const view = { name, namespace, uid, version, launcher: true, pending: true };
        const removal = await removeUnstarted(extender, view as unknown as PodView);
        return removal.outcome === 'changed' ? undefined : removal.outcome;
      });
      assert.equal(outcome, 'deleted');
      await extender.close();
      await remove(vm);
    });
  });
};
