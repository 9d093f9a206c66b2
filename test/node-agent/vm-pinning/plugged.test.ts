import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { nodeLauncherOf } from '../../../node-agent/vm-pinning/launchers.ts';
import { eventually, tempDirectories } from '../support.ts';
import { createScene, type PretendVm } from './stage.ts';

const temp = tempDirectories();
const vcpusOf = (vm: PretendVm, count: number) => Array.from({ length: count }, (_, i) => vm.allowed(`CPU ${i}/KVM`));

describe('a mask whose entries do not match the vCPUs of a migrated VM', () => {
  const stop = new AbortController();
  after(() => stop.abort());

  /** A VM that was migrated to this node, where KubeVirt plugs in vCPUs. */
  const arrive = (vcpus: number, mask: string) => {
    const scene = createScene(temp());
    const vm = scene.addVm({ name: 'vm', vcpus, mask, cpuset: '0-7' });
    vm.launcher = { ...vm.launcher, migrated: true };
    scene.launchers.set(vm.uid, vm.launcher);
    const vms = scene.create();
    void vms.run(stop.signal);
    return { scene, vm, vms };
  };
  const plug = ({ scene, vm }: ReturnType<typeof arrive>, index: number) => {
    const tid = 5000 + index;
    vm.threads.set(`CPU ${index}/KVM`, tid);
    scene.affinity.masks.set(tid, CpuSet.parse('0-7'));
    scene.processes.get(vm.pid)?.threads.set(tid, `CPU ${index}/KVM`);
  };

  it('keeps vCPUs with entries pinned while others are plugged in, which may use all CPUs of the VM', async () => {
    const arrived = arrive(2, '1:3');
    const { scene, vm, vms } = arrived;
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    assert.equal(vms.pinning()[0]?.reason, undefined);
    plug(arrived, 2);
    await eventually(() => vms.pinning()[0]?.vcpus === 3, 'the third');
    scene.pass(5000);
    await eventually(() => vms.pinning()[0]?.reason === 'OtherVCPUs', 'the remark');
    assert.deepEqual([vms.pinning()[0]?.state, ...vcpusOf(vm, 3)], ['pinned', '1', '3', '0-7']);
    const [event] = scene.eventsOf('CPUMaskOtherVCPUs');
    assert.match(event?.message ?? '', /mask 1:3 has entries for 2 vCPUs, and the VM has 3: the others run on any/);
  });

  it('gives a hotplugged vCPU its waiting entry', async () => {
    const arrived = arrive(2, '1:3:5');
    const { scene, vm, vms } = arrived;
    // A guest that has not started all vCPU threads looks the same.
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual([vms.pinning(), vcpusOf(vm, 2)], [[], ['0-7', '0-7']]);
    scene.pass(2001);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    assert.deepEqual(vcpusOf(vm, 2), ['1', '3']);
    assert.match(vms.pinning()[0]?.message ?? '', /3 vCPUs, and the VM has 2: the other entries wait/);
    plug(arrived, 2);
    await eventually(() => vcpusOf(vm, 3).join() === '1,3,5', 'the third');
    await eventually(() => vms.pinning()[0]?.reason === undefined, 'nothing is left to say');
  });

  it('is recognised by KubeVirt’s label of a migration target', () => {
    const pod = (labels: Record<string, string>) => ({
      metadata: {
        name: 'virt-launcher-vm-x',
        namespace: 'team-a',
        uid: 'uid',
        labels: { 'kubevirt.io': 'virt-launcher', ...labels },
        annotations: undefined,
        ownerReferences: [
          { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid: 'vmi', controller: true },
        ],
      },
      spec: { containers: [{ name: 'compute', resources: undefined }] },
    });
    assert.equal(nodeLauncherOf(pod({}))?.migrated, false);
    assert.equal(nodeLauncherOf(pod({ 'kubevirt.io/migrationJobUID': 'job' }))?.migrated, true);
  });
});
