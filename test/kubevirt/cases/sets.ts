import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { PODS } from '../../../sandbox/api-server/built-in-types.ts';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { cpusOf, machine, templateOf, WHOLE_CORES } from '../machines.ts';
import { PATIENCE } from '../patience.ts';
import type { Cases } from './case.ts';

/** Sources of VMs: replica sets, pools, instancetypes and preferences, clones. */
export const setCases: Cases = (stage) => {
  const launchersOf = (prefix: string) =>
    stage()
      .cluster.client.list(PODS)
      .filter(({ metadata }) => metadata.generateName?.startsWith(`virt-launcher-${prefix}`));

  describe('VMs from templates', () => {
    const cpu = { cores: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
    const sets: [what: string, name: string, KubeObject][] = [
      [
        'VMI of a replica set',
        'rs',
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachineInstanceReplicaSet',
          metadata: { name: 'rs', namespace: 'vms' },
          spec: {
            replicas: 2,
            selector: { matchLabels: { set: 'rs' } },
            template: templateOf({ labels: { set: 'rs' }, cpu }),
          },
        },
      ],
      [
        'VM of a pool',
        'pool-',
        {
          apiVersion: 'pool.kubevirt.io/v1beta1',
          kind: 'VirtualMachinePool',
          metadata: { name: 'pool', namespace: 'vms' },
          spec: {
            replicas: 2,
            selector: { matchLabels: { pool: 'p' } },
            virtualMachineTemplate: {
              metadata: { labels: { pool: 'p' } },
              spec: machine('pooled', { labels: { pool: 'p' }, cpu }).spec ?? null,
            },
          },
        },
      ],
    ];
    for (const [what, prefix, set] of sets) {
      it(`every ${what} is padded`, async () => {
        const { create, remove } = stage();
        await create(set);
        const pods = await until('two launchers', PATIENCE, () =>
          launchersOf(prefix).length >= 2 ? launchersOf(prefix) : undefined,
        );
        assert.deepEqual(pods.map(cpusOf), ['4', '4']);
        await remove(set);
      });
    }

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
  });
};
