import assert from 'node:assert/strict';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { cpusOf, WHOLE_CORES } from '../machines.ts';
import type { Cases } from '../stage.ts';

/** A VM whose template has nothing of its own: what KubeVirt adds reaches the launcher. */
export const instancetypeCases: Cases = (stage) => {
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
};
