import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION } from '../../../model/names.ts';
import type { VmPinning } from '../../../node-agent/vm-pinning/vm-pinning.ts';
import { eventually, tempDirectories } from '../support.ts';
import { createScene, type PretendVm } from './stage.ts';

const temp = tempDirectories();
const set = (text: string) => CpuSet.parse(text);
const vcpusOf = (vm: PretendVm, count: number) => Array.from({ length: count }, (_, i) => vm.allowed(`CPU ${i}/KVM`));

/** Runs the duty until the test ends. */
function running() {
  const controllers: AbortController[] = [];
  afterEach(() => {
    for (const controller of controllers.splice(0)) controller.abort();
  });
  return (vms: VmPinning) => {
    const controller = new AbortController();
    controllers.push(controller);
    const done = vms.run(controller.signal);
    return async () => {
      controller.abort();
      await done;
    };
  };
}

describe('CPU masks on a node', () => {
  const run = running();

  it('M10: for any mask, cpuset, reserved and owned CPUs, no thread gets a CPU of another pod', async () => {
    const cpus = fc.uniqueArray(fc.nat(31), { minLength: 1, maxLength: 12 }).map((ids) => CpuSet.of(ids));
    const masks = fc.array(fc.oneof(fc.constant('all'), cpus.map(String)), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(masks, cpus, cpus, cpus, async (entries, cpuset, reserved, owned) => {
        const directory = temp();
        const scene = createScene(directory);
        scene.view = { reserved };
        scene.hold('other', owned.toString());
        scene.addVm({ vcpus: 3, mask: entries.join(':'), cpuset: cpuset.toString() });
        const vms = scene.create();
        const stop = run(vms);
        scene.pass(3000);
        await new Promise((resolve) => setTimeout(resolve, 5));
        await stop();
        const allowed = cpuset.minus(reserved).minus(owned);
        for (const call of scene.affinity.sets) {
          assert.ok(set(call.split(' ')[1] ?? '').isSubsetOf(allowed), `${call}, allowed ${allowed}`);
        }
        rmSync(directory, { recursive: true });
      }),
      { numRuns: 40 },
    );
  });

  it('M5: a migration’s target is a pod of its own, pinned as soon as it has threads', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ name: 'vm', vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    const target = scene.addVm({ name: 'vm', vcpus: 2, mask: '1:3', cpuset: '0-7' });
    await eventually(() => vcpusOf(target, 2).join() === '1,3', 'the target is pinned');
    scene.launchers.delete(vm.uid);
    await eventually(() => vms.pinning().length === 1, 'the source is gone');
    assert.equal(vms.pinning()[0]?.podUID, target.uid);
  });

  it('vCPUs get the container’s CPUs back when the mask is removed, and keep theirs at the end of the agent', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const vms = scene.create();
    const end = run(vms);
    await eventually(() => vcpusOf(vm, 2).join() === '1,3', 'pinned');
    scene.annotate(vm, {});
    await eventually(() => vcpusOf(vm, 2).join() === '0-7,0-7', 'given back');
    await eventually(() => vms.pinning().length === 0, 'not reported');
    scene.annotate(vm, { [CPU_MASK_ANNOTATION]: '5' });
    await eventually(() => vcpusOf(vm, 2).join() === '5,5', 'pinned');
    await end();
    assert.deepEqual([vcpusOf(vm, 2), vms.pinning()], [['5', '5'], []]);
  });
});
