import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../cli/demo/until.ts';
import { createKubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { EVENTS, PODS } from '../../../sandbox/api-server/built-in-types.ts';
import type { KubeObject, KubePod } from '../../../sandbox/objects.ts';
import { startPlugin } from '../../sandbox/plugin-fixture.ts';
import { cpusOf, machine, pathOf, templateOf, WHOLE_CORES } from '../machines.ts';
import { PATIENCE } from '../patience.ts';
import { HOST_DEVICE } from '../real-kubevirt.ts';
import type { Cases } from './case.ts';

const MASK = { 'plumbline.dev/cpu-mask': '0' };

/** Sources of VMs: replica sets, pools, instancetypes and preferences, clones. */
export const setCases: Cases = (stage) => {
  const launchersOf = (prefix: string) =>
    stage()
      .cluster.client.list(PODS)
      .filter(({ metadata }) => metadata.generateName?.startsWith(`virt-launcher-${prefix}`));

  describe('VMs from templates', () => {
    it('every VMI of a replica set is padded', async () => {
      const { create, remove } = stage();
      const template = templateOf({
        labels: { set: 'rs' },
        cpu: { cores: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true },
      });
      const set = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceReplicaSet',
        metadata: { name: 'rs', namespace: 'vms' },
        spec: { replicas: 2, selector: { matchLabels: { set: 'rs' } }, template },
      };
      await create(set);
      const pods = await until('two launchers', PATIENCE, () =>
        launchersOf('rs').length >= 2 ? launchersOf('rs') : undefined,
      );
      assert.deepEqual(pods.map(cpusOf), ['4', '4']);
      await remove(set);
    });

    it('a replica set whose launchers a kubelet rejects sends it no more of them for a while, although each has its own VMI', async () => {
      const { cluster, create, remove } = stage();
      const node = cluster.node('smt2-b');
      const plugin = await startPlugin(node.kubeletDirectory, HOST_DEVICE, [0]);
      plugin.refuseAllocation('the device does not answer');
      const hostDevices = [{ name: 'gpu', deviceName: HOST_DEVICE }];
      const template = templateOf({ labels: { set: 'gpus' }, spec: { domain: { devices: { hostDevices } } } });
      const set = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceReplicaSet',
        metadata: { name: 'gpus', namespace: 'vms' },
        spec: { replicas: 1, selector: { matchLabels: { set: 'gpus' } }, template },
      };
      const isExcluded = ({ status }: KubePod) =>
        status?.conditions?.some(({ message }) =>
          message?.includes('its kubelet refused a pod of this shape: UnexpectedAdmissionError'),
        );
      const rejections = () =>
        cluster.client.list(EVENTS).filter(({ reason, involvedObject }) => {
          const { name = '' } = (involvedObject ?? {}) as { name?: string };
          return reason === 'UnexpectedAdmissionError' && name.startsWith('virt-launcher-gpus');
        }).length;
      try {
        await create(set);
        await until('a launcher to wait for another node', PATIENCE, () => launchersOf('gpus').find(isExcluded));
        const before = rejections();
        // The first exclusion lasts 30 s.
        await delay(15_000);
        // One may have been in flight.
        assert.ok(before <= 2, `${before} rejections before the exclusion`);
        assert.ok(rejections() <= before + 1, `${rejections()} rejections after 15 s of it`);
      } finally {
        await remove(set);
        await plugin.stop();
      }
    });

    it('every VM of a pool is padded', async () => {
      const { create, remove } = stage();
      const cpu = { cores: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
      const { spec } = machine('pooled', { labels: { pool: 'p' }, cpu });
      const pool = {
        apiVersion: 'pool.kubevirt.io/v1beta1',
        kind: 'VirtualMachinePool',
        metadata: { name: 'pool', namespace: 'vms' },
        spec: {
          replicas: 2,
          selector: { matchLabels: { pool: 'p' } },
          virtualMachineTemplate: { metadata: { labels: { pool: 'p' } }, spec: spec ?? null },
        },
      };
      await create(pool);
      const pods = await until('two launchers', PATIENCE, () =>
        launchersOf('pool-').length >= 2 ? launchersOf('pool-') : undefined,
      );
      assert.deepEqual(pods.map(cpusOf), ['4', '4']);
      await remove(pool);
    });

    it('a VMI with vCPUs of an instancetype and the annotation of a preference has a padded launcher', async () => {
      const { create, launcher, remove } = stage();
      const instancetype = {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind: 'VirtualMachineInstancetype',
        metadata: { name: 'five', namespace: 'vms' },
        spec: { cpu: { guest: 4, dedicatedCPUPlacement: true, isolateEmulatorThread: true }, memory: { guest: '1Gi' } },
      };
      const preference = {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind: 'VirtualMachinePreference',
        metadata: { name: 'whole-cores', namespace: 'vms' },
        spec: { annotations: WHOLE_CORES },
      };
      await create(instancetype);
      await create(preference);
      const vm: KubeObject = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name: 'typed', namespace: 'vms' },
        spec: {
          runStrategy: 'Always',
          instancetype: { name: 'five', kind: 'VirtualMachineInstancetype' },
          preference: { name: 'whole-cores', kind: 'VirtualMachinePreference' },
          template: { spec: { terminationGracePeriodSeconds: 0, domain: { devices: {} } } },
        },
      };
      await create(vm);
      assert.equal(cpusOf(await launcher('typed')), '6');
      for (const one of [vm, instancetype, preference]) await remove(one);
    });

    it('a tenant with KubeVirt’s own role edit gets no CPU mask through an instancetype, a preference or a clone', async () => {
      const { client, cluster } = stage();
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'tenant', namespace: 'vms' } };
      const subjects = [{ kind: 'ServiceAccount', name: 'tenant', namespace: 'vms' }];
      const binding = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'tenant', namespace: 'vms' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'kubevirt.io:edit' },
        subjects,
      };
      await cluster.plane.create(account, binding);
      const token = await cluster.plane.serviceAccountToken('vms', 'tenant');
      const tenant = createKubeClient(kubeconfigAccess(await cluster.plane.kubeconfig('tenant', token)), 'tenant');
      const type = (kind: string, annotations: object): KubeObject => ({
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind,
        metadata: { name: 'masking', namespace: 'vms' },
        spec: {
          annotations: { ...annotations },
          ...(kind.endsWith('type') && { cpu: { guest: 1 }, memory: { guest: '1Gi' } }),
        },
      });
      const masking = '{"op":"add","path":"/spec/template/metadata/annotations/plumbline.dev~1cpu-mask","value":"0"}';
      const clone = (patches: string[]): KubeObject => ({
        apiVersion: 'clone.kubevirt.io/v1beta1',
        kind: 'VirtualMachineClone',
        metadata: { name: 'copy', namespace: 'vms' },
        spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'x' }, patches },
      });
      const objects = [
        type('VirtualMachineInstancetype', MASK),
        type('VirtualMachinePreference', MASK),
        clone([masking]),
        machine('masked', { annotations: MASK, cpu: { cores: 1 } }),
      ];
      for (const object of objects) {
        const attempt = tenant.create(pathOf(object), object, { query: { dryRun: 'All' } });
        await assert.rejects(attempt, /cpu-mask|CPU mask/i, object.kind);
      }
      // Without a mask, the tenant may create the same objects.
      for (const kind of ['VirtualMachineInstancetype', 'VirtualMachinePreference']) {
        const object = type(kind, { note: 'x' });
        await tenant.create(pathOf(object), object, { query: { dryRun: 'All' } });
      }
      await tenant.close();
      void client;
    });
  });
};
