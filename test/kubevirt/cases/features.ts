import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { kubeconfigAccess } from '../../../kube/api-access.ts';
import { createKubeClient } from '../../../kube/client.ts';
import type { Pod } from '../../../sandbox/objects.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { removePod } from '../../../scheduler-plugin/controllers/removal.ts';
import { cpusOf, machine } from '../machines.ts';
import { PATIENCE } from '../patience.ts';
import type { Cases } from './case.ts';

const FOUR = { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
const EVEN_PARITY = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';
const KUBEVIRT_CR = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MERGE = 'application/merge-patch+json';

/** What the stand-in does not have: KubeVirt's interceptor of evictions, and what the KubeVirt object's annotation does. */
export const featureCases: Cases = (stage) => {
  describe('features of KubeVirt itself', () => {
    it('an eviction of a launcher that never started is denied for LiveMigrate, and the extender deletes it instead', async () => {
      const { client, cluster, create, launcher, remove } = stage();
      const spec = { evictionStrategy: 'LiveMigrate', nodeSelector: { 'kubernetes.io/hostname': 'nowhere' } };
      const vm = machine('waits', { spec });
      await create(vm);
      const pod = await launcher('waits');
      const token = await cluster.plane.serviceAccountToken('plumbline-system', 'plumbline-scheduler');
      const extender = createKubeClient(kubeconfigAccess(await cluster.plane.kubeconfig('evicts', token)), 'evicts');
      const { name, uid = '', namespace = '' } = pod.metadata;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      await assert.rejects(
        extender.create(`/api/v1/namespaces/vms/pods/${name}/eviction`, eviction),
        /429 .*virt-launcher-eviction-interceptor.kubevirt.io" denied the request: VMI waits is configured with an eviction strategy but is not live-migratable/,
      );
      // As it does: again, with what the pod has become, where it has changed in the meantime.
      const outcome = await until('the extender to remove it', PATIENCE, async () => {
        const now = (await client.get(`/api/v1/namespaces/vms/pods/${name}`)) as Pod;
        const version = String(now.metadata.resourceVersion);
        const view = { name, namespace, uid, version, launcher: true, pending: true };
        const removal = await removePod(extender, view as unknown as PodView);
        return removal.outcome === 'changed' ? undefined : removal.outcome;
      });
      assert.equal(outcome, 'deleted');
      await extender.close();
      await remove(vm);
    });

    it('AlignCPUs with its annotation: KubeVirt makes it even, or 5 with a pool, and Plumbline goes on from there', async () => {
      const { client, create, launcher, vmi, remove } = stage();
      await client.patch(KUBEVIRT_CR, MERGE, { metadata: { annotations: { [EVEN_PARITY]: '' } } });
      const pool = { domain: { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: 1 } } };
      const cases = [
        ['parity', machine('parity', { annotations: {}, cpu: FOUR }), '6'],
        ['pooled', machine('pooled', { annotations: {}, cpu: { ...FOUR, cores: 2 }, spec: pool }), '6'],
      ] as const;
      try {
        for (const [name, vm, cpus] of cases) {
          await until('KubeVirt to have the annotation', PATIENCE, async () => {
            await create(vm);
            const found = await until('the VMI', PATIENCE, () => vmi(name));
            if (found.metadata.annotations?.[EVEN_PARITY] !== undefined) return true;
            await remove(vm);
            return undefined;
          });
          assert.equal(cpusOf(await launcher(name)), cpus);
          await remove(vm);
        }
      } finally {
        await client.patch(KUBEVIRT_CR, MERGE, { metadata: { annotations: { [EVEN_PARITY]: null } } });
      }
    });
  });
};
