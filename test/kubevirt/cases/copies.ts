import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { cpusOf, machine, pathOf, WHOLE_CORES } from '../machines.ts';
import { PATIENCE } from '../patience.ts';
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
interface Kept {
  readonly spec: { readonly template: { readonly metadata: { readonly annotations?: Record<string, string> } } };
  readonly status?: { readonly readyToUse?: boolean; readonly complete?: boolean };
}

/** VMs that are created from other VMs. They have no disks: this environment cannot take a snapshot of a volume. */
export const copyCases: Cases = (stage) => {
  it('a VM that is restored from a snapshot has the annotation, and its launcher is padded', async () => {
    const { client, create, launcher, remove } = stage();
    const vm = machine('kept', { machine: { runStrategy: 'Halted' } });
    const read = async (object: KubeObject) => (await client.get(pathOf(object, object.metadata.name))) as Kept;
    await create(vm);
    await create(SNAPSHOT);
    await until('the snapshot', PATIENCE, async () => (await read(SNAPSHOT)).status?.readyToUse || undefined);
    const removed = Object.fromEntries(Object.keys(WHOLE_CORES).map((key) => [key, null]));
    await client.patch(pathOf(vm, 'kept'), MERGE, { spec: { template: { metadata: { annotations: removed } } } });
    await create(RESTORE);
    await until('the restore', PATIENCE, async () => (await read(RESTORE)).status?.complete || undefined);
    // KubeVirt adds its own annotations.
    const { annotations = {} } = (await read(vm)).spec.template.metadata;
    for (const [key, value] of Object.entries(WHOLE_CORES)) assert.equal(annotations[key], value, key);
    await client.patch(pathOf(vm, 'kept'), MERGE, { spec: { runStrategy: 'Always' } });
    assert.equal(cpusOf(await launcher('kept')), '10');
    for (const object of [RESTORE, SNAPSHOT, vm]) await remove(object);
  });
};
