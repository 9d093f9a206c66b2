import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { cpusOf, machine, PATIENCE } from '../machines.ts';
import type { Cases } from '../stage.ts';

const MERGE = 'application/merge-patch+json';

/** Migrations of VMs, and CPU hotplug, which KubeVirt performs with a migration. */
export const migrationCases: Cases = (stage) => {
  describe('migrations', () => {
    it('the target of a migration is padded like the source, is placed on another node and takes over', async () => {
      const { create, launcher, launchers, untilPhase, vmi, remove } = stage();
      const vm = machine('moves');
      await create(vm);
      const source = await launcher('moves');
      await untilPhase('moves', 'Running');
      await create({
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { name: 'move', namespace: 'vms' },
        spec: { vmiName: 'moves' },
      });
      const target = await until('the target', PATIENCE, () =>
        launchers('moves').find((pod) => pod.metadata.uid !== source.metadata.uid && pod.spec.nodeName !== undefined),
      );
      assert.deepEqual([cpusOf(source), cpusOf(target)], ['10', '10']);
      assert.ok(target.metadata.labels?.['kubevirt.io/migrationJobUID'] !== undefined);
      await until(
        'the VM to have moved',
        PATIENCE,
        () => vmi('moves')?.status?.nodeName === target.spec.nodeName || undefined,
      );
      assert.notEqual(vmi('moves')?.status?.nodeName, source.spec.nodeName);
      await remove(vm);
    });

    it('CPU hotplug from 1 to 3 sockets of two cores gives launchers with 4, 6 and 8 CPUs', async () => {
      const { client, create, launcher, launchers, untilPhase, vmi, remove } = stage();
      const cpu = {
        cores: 2,
        sockets: 1,
        threads: 1,
        maxSockets: 4,
        dedicatedCpuPlacement: true,
        isolateEmulatorThread: true,
      };
      const vm = machine('grows', { cpu });
      await create(vm);
      await launcher('grows');
      await untilPhase('grows', 'Running');
      const seen = launchers('grows').map(cpusOf);
      for (const sockets of [2, 3]) {
        const path = '/apis/kubevirt.io/v1/namespaces/vms/virtualmachines/grows';
        await client.patch(path, MERGE, { spec: { template: { spec: { domain: { cpu: { sockets } } } } } });
        await until(`${sockets} sockets to be plugged in`, PATIENCE, () => {
          const topology = vmi('grows')?.status?.['currentCPUTopology'] as { sockets?: number } | undefined;
          return topology?.sockets === sockets || undefined;
        });
        seen.push(cpusOf(launchers('grows').at(-1)!));
      }
      assert.deepEqual(seen, ['4', '6', '8']);
      await remove(vm);
    });
  });
};
