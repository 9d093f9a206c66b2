import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { createKubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import type { KubePod } from '../../../sandbox/objects.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { removeUnstarted } from '../../../scheduler-plugin/controllers/evictions.ts';
import { machine, PATIENCE } from '../machines.ts';
import type { Cases } from '../stage.ts';

/** Evictions of launchers. */
export const runningCases: Cases = (stage) => {
  describe('evictions', () => {
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
