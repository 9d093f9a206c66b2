import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { cpusOf, machine, pathOf, WHOLE_CORES } from '../machines.ts';
import { PATIENCE } from '../patience.ts';
import type { KubeVirtStage } from '../stage.ts';
import type { Cases } from './case.ts';

const MERGE = 'application/merge-patch+json';
const SOURCE = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'kept' };
const of = (apiVersion: string, kind: string, name: string, spec: object): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, namespace: 'vms' },
  spec: { ...spec },
});
const SNAPSHOT = of('snapshot.kubevirt.io/v1beta1', 'VirtualMachineSnapshot', 'kept-1', { source: SOURCE });
const RESTORE = of('snapshot.kubevirt.io/v1beta1', 'VirtualMachineRestore', 'kept-back', {
  target: SOURCE,
  virtualMachineSnapshotName: 'kept-1',
});
const CLONE = of('clone.kubevirt.io/v1beta1', 'VirtualMachineClone', 'kept-again', {
  source: SOURCE,
  target: { ...SOURCE, name: 'copy' },
});

interface Kept {
  readonly spec: { readonly template: { readonly metadata: { readonly annotations?: Record<string, string> } } };
  readonly status?: { readonly readyToUse?: boolean; readonly complete?: boolean; readonly phase?: string };
}

/** VMs that are created from other VMs. They have no disks: this environment cannot take a snapshot of a volume. */
export const copyCases: Cases = (stage) => {
  const read = async ({ client }: KubeVirtStage, object: KubeObject) =>
    (await client.get(pathOf(object, object.metadata.name))) as Kept;
  const start = ({ client }: KubeVirtStage, vm: KubeObject) =>
    client.patch(pathOf(vm, vm.metadata.name), MERGE, { spec: { runStrategy: 'Always' } });

  /** KubeVirt adds its own annotations. */
  const assertAnnotated = async (vm: KubeObject) => {
    const { annotations = {} } = (await read(stage(), vm)).spec.template.metadata;
    for (const [key, value] of Object.entries(WHOLE_CORES)) assert.equal(annotations[key], value, key);
  };

  describe('snapshots, restores and clones', () => {
    const vm = machine('kept', { machine: { runStrategy: 'Halted' } });
    const copy = { ...vm, metadata: { ...vm.metadata, name: 'copy' } };

    before(async () => {
      const { create } = stage();
      await create(vm);
      await create(SNAPSHOT);
      await until(
        'the snapshot',
        PATIENCE,
        async () => (await read(stage(), SNAPSHOT)).status?.readyToUse || undefined,
      );
    });
    after(async () => {
      for (const object of [CLONE, RESTORE, SNAPSHOT, copy, vm]) await stage().remove(object);
    });

    it('a restored VM has the annotation, and its launcher is padded', async () => {
      const { client, create, launcher } = stage();
      const annotations = Object.fromEntries(Object.keys(WHOLE_CORES).map((key) => [key, null]));
      await client.patch(pathOf(vm, 'kept'), MERGE, { spec: { template: { metadata: { annotations } } } });
      await create(RESTORE);
      await until('the restore', PATIENCE, async () => (await read(stage(), RESTORE)).status?.complete || undefined);
      await assertAnnotated(vm);
      await start(stage(), vm);
      assert.equal(cpusOf(await launcher('kept')), '10');
    });

    it('a clone has the annotation, and its launcher is padded', async () => {
      const { client, create, launcher } = stage();
      // virt-controller would take an online snapshot of it, for which virt-handler freezes the guest.
      await client.patch(pathOf(vm, 'kept'), MERGE, { spec: { runStrategy: 'Halted' } });
      await until('the VM to have stopped', PATIENCE, () => stage().vmi('kept') === undefined || undefined);
      await create(CLONE);
      await until(
        'the clone',
        PATIENCE,
        async () => (await read(stage(), CLONE)).status?.phase === 'Succeeded' || undefined,
      );
      await assertAnnotated(copy);
      await start(stage(), copy);
      assert.equal(cpusOf(await launcher('copy')), '10');
    });
  });
};
