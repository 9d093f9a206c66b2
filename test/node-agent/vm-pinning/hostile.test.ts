import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { SyscallError } from '../../../native/affinity.ts';
import { createCgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import { findGuest } from '../../../node-agent/vm-pinning/guest.ts';
import { nodeLauncherOf } from '../../../node-agent/vm-pinning/launchers.ts';
import type { VmPinning } from '../../../node-agent/vm-pinning/vm-pinning.ts';
import { eventually, tempDirectories } from '../support.ts';
import { createScene, launcherPod } from './stage.ts';

describe('a guest that controls its QEMU or its launcher', () => {
  const temp = tempDirectories();
  const stopping: AbortController[] = [];
  afterEach(() => {
    for (const controller of stopping.splice(0)) controller.abort();
  });
  const run = (vms: VmPinning) => {
    const controller = new AbortController();
    stopping.push(controller);
    void vms.run(controller.signal);
  };

  it('gets no thread moved whose id belongs to another process now', () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 1, cpuset: '0-7' });
    const guest = findGuest([vm.pid], scene.deps);
    assert.ok(guest !== undefined);
    const tid = vm.threads.get('CPU 0/KVM') ?? 0;
    guest.affinity().set(tid, CpuSet.parse('3').toWords());
    assert.equal(vm.allowed('CPU 0/KVM'), '3');
    // The thread has ended, and the id now belongs to the kubelet.
    scene.processes.get(vm.pid)?.threads.delete(tid);
    scene.affinity.masks.set(tid, CpuSet.parse('0-63'));
    const isGone = (error: unknown) => error instanceof SyscallError && error.code === 'ESRCH';
    assert.throws(() => guest.affinity().set(tid, CpuSet.parse('0').toWords()), isGone);
    assert.equal(String(scene.affinity.masks.get(tid)), '0-63');
    // The same for a pid that belongs to another process now.
    scene.processes.set(vm.pid, { name: 'kubelet', start: 1, threads: new Map([[tid, 'kubelet']]) });
    assert.throws(() => guest.affinity().set(tid, CpuSet.parse('0').toWords()), isGone);
  });

  it('gets all or none of its threads pinned if an id changes between check and move; the foreign thread stays', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const tid = vm.threads.get('CPU 1/KVM') ?? 0;
    const { threads } = scene.deps;
    run(scene.create({ threads: { ...threads, has: (pid, one) => one !== tid && threads.has(pid, one) } }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(!scene.affinity.sets.some((text) => text.startsWith(`${tid} `)), scene.affinity.sets.join());
    assert.equal(vm.allowed('CPU 0/KVM'), '0-7');
  });

  it('has only a few names read for a hundred thousand processes', () => {
    const root = temp();
    const scene = createScene(root);
    const vm = scene.addVm({ vcpus: 1, cpuset: '0-7' });
    writeFileSync(join(vm.path, 'cgroup.procs'), Array.from({ length: 100_000 }, (_, i) => 5000 + i).join('\n'));
    let named = 0;
    const processes = {
      ...scene.deps.processes,
      name: () => {
        named++;
        return 'sh';
      },
    };
    const pids = createCgroupTree(root).processes(vm.path) ?? [];
    findGuest(pids, { ...scene.deps, processes });
    assert.ok(pids.length === 256 && named === 256, `${pids.length} processes, ${named} names`);
    assert.ok(pids.every((pid) => pid >= 5000 && pid < 105_000));
  });

  it('has only a few processes checked for threads if many call themselves QEMU', () => {
    const scene = createScene(temp());
    let listed = 0;
    const threads = {
      ...scene.deps.threads,
      list: () => {
        listed++;
        return [];
      },
    };
    const processes = { name: () => 'qemu-kvm', start: () => 1, identity: () => 1 };
    findGuest(
      Array.from({ length: 256 }, (_, i) => i + 1),
      { ...scene.deps, threads, processes },
    );
    assert.ok(listed <= 4, `${listed} lists`);
  });

  it('is checked rarely if its checks take long; other VMs are checked as usual', async () => {
    const scene = createScene(temp());
    const slow = scene.addVm({ vcpus: 1, mask: '1', cpuset: '0-7' });
    const other = scene.addVm({ vcpus: 1, mask: '3', cpuset: '0-7' });
    let looks = 0;
    let looked = 0;
    const { threads } = scene.deps;
    const list = (pid: number) => {
      if (pid === slow.pid) {
        looks++;
        const begun = performance.now();
        while (performance.now() < begun + 30);
        looked += performance.now() - begun;
      }
      return threads.list(pid);
    };
    run(scene.create({ threads: { ...threads, list } }));
    await eventually(() => other.allowed('CPU 0/KVM') === '3', 'pinned');
    const [before, begun] = [looks, performance.now()];
    looked = 0;
    for (let repaired = 0; repaired < 10 || performance.now() < begun + 1000; repaired++) {
      other.put('CPU 0/KVM', '0-7');
      await eventually(() => other.allowed('CPU 0/KVM') === '3', 'the pin is restored');
    }
    const share = looked / (performance.now() - begun);
    assert.ok(share < 0.25, `${looks - before} looks took ${Math.round(share * 100)} % of the time`);
  });

  it('cannot make the message about its mask longer', async () => {
    const scene = createScene(temp(), 'v2 systemd', '0-1023');
    const odd = Array.from({ length: 400 }, (_, i) => i * 2).join(',');
    scene.addVm({ name: 'long', vcpus: 8, mask: Array.from({ length: 8 }, () => odd).join(':'), cpuset: '0-1023' });
    scene.addVm({ name: 'too', vcpus: 8, mask: Array.from({ length: 8 }, () => odd).join(':'), cpuset: '0-1023' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning().length === 2 && scene.eventsOf('CPUMasksOverlap').length > 0, 'pinned');
    for (const { message } of scene.events) assert.ok(message.length <= 1024, `${message.length} characters`);
    for (const line of scene.lines) assert.ok(JSON.stringify(line).length < 2000);
  });

  for (const id of ['containerd://../../init.scope', 'containerd://', 'x', `cri-o://${'a'.repeat(200)}`, 'a://b/c']) {
    it(`cannot point to another cgroup with its container id: ${id.slice(0, 30)}`, () => {
      const pod = launcherPod('vm', 'uid-1', 'plain', {});
      assert.equal(pod.containerId, 'plain');
      const launcher = nodeLauncherOf({
        metadata: {
          name: 'p',
          namespace: 'n',
          uid: 'u',
          labels: { 'kubevirt.io': 'virt-launcher' },
          ownerReferences: [
            { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'v', uid: 'w', controller: true },
          ],
        },
        spec: { containers: [{ name: 'compute', resources: undefined }] },
        status: { containerStatuses: [{ name: 'compute', containerID: id }] },
      });
      assert.equal(launcher?.containerId, undefined);
    });
  }
});
