import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createLauncherPinning } from '../../../node-agent/vm-pinning/launcher-pinning.ts';
import { tempDirectories } from '../support.ts';
import { createScene } from './stage.ts';

describe('the pinning of one launcher', () => {
  const temp = tempDirectories();

  it('finds no guest before the kubelet reports the container, and the guest afterwards', () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 1, mask: '0:2', cpuset: '0-3' });
    const pinning = createLauncherPinning(scene.deps);
    const node = { host: undefined, reserved: undefined, owned: CpuSet.EMPTY, dedicated: new Set<string>() };
    const early = pinning.reconcile({ ...vm.launcher, containerId: undefined }, node);
    assert.deepEqual([early.pid, early.container.toString(), early.threads], [undefined, '', []]);
    const later = pinning.reconcile(vm.launcher, node);
    assert.deepEqual([later.pid, later.container.toString()], [vm.pid, '0-3']);
  });
});
