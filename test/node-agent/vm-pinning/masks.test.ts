import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION, FIX_CPU_MISMATCH_ANNOTATION } from '../../../model/names.ts';
import type { VmPinning } from '../../../node-agent/vm-pinning/vm-pinning.ts';
import { eventually, tempDirectories } from '../support.ts';
import { createScene, LAYOUTS, type PretendVm } from './stage.ts';

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

  for (const layout of LAYOUTS) {
    for (const qos of ['', 'burstable', 'besteffort'] as const) {
      it(`finds QEMU through its pod: cgroup ${layout}, ${qos || 'guaranteed'}`, async () => {
        const scene = createScene(temp(), layout);
        const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7', qos });
        const vms = scene.create();
        run(vms);
        await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
        assert.deepEqual(vcpusOf(vm, 2), ['1', '3']);
        assert.deepEqual(vms.pinning(), [
          { podUID: vm.uid, namespace: 'team-a', podName: vm.launcher.podName, state: 'pinned', vcpus: 2 },
        ]);
        assert.equal(vm.allowed('qemu-system-x86'), '0-7');
        assert.match(scene.eventsOf('CPUMaskApplied')[0]?.message ?? '', /CPU mask 1:3: vCPU 0 on 1, vCPU 1 on 3/);
      });
    }
  }

  for (const [mask, vcpus, expected] of [
    ['1:3', 2, ['1', '3']],
    ['1-2:all', 2, ['1-2', '0-7']],
    ['all:1,3-5:0', 3, ['0-7', '1,3-5', '0']],
    ['0', 3, ['0', '0', '0']],
  ] as const) {
    it(`M2: ${mask} puts ${vcpus} vCPUs on ${expected.join(' and ')}`, async () => {
      const scene = createScene(temp());
      const vm = scene.addVm({ vcpus, mask, cpuset: '0-7' });
      const vms = scene.create();
      run(vms);
      await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
      assert.deepEqual(vcpusOf(vm, vcpus), expected);
    });
  }

  it('M2: all pins nothing and is not reported; CPUs 63, 64 and 200 are ordinary', async () => {
    const scene = createScene(temp(), 'v2 systemd', '0-255');
    const any = scene.addVm({ vcpus: 2, mask: 'all', cpuset: '0-127' });
    const far = scene.addVm({ vcpus: 3, mask: '63:64:200', cpuset: '0-255' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning().length > 0, 'pinned');
    assert.deepEqual(vcpusOf(far, 3), ['63', '64', '200']);
    assert.deepEqual(vcpusOf(any, 2), ['0-127', '0-127']);
    assert.deepEqual(
      vms.pinning().map(({ podUID }) => podUID),
      [far.uid],
    );
  });

  for (const [mask, vcpus] of [
    ['0:1', 3],
    ['2:1:1:all', 3],
  ] as const) {
    it(`M4: ${mask} for ${vcpus} vCPUs: refused, with an Event, and nothing is pinned`, async () => {
      const scene = createScene(temp());
      const vm = scene.addVm({ name: 'vm', vcpus, mask, cpuset: '0-7' });
      const vms = scene.create();
      run(vms);
      // Threads appear one after the other, so too few of them are not refused at once.
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.deepEqual(vms.pinning(), []);
      scene.pass(2001);
      await eventually(() => vms.pinning()[0]?.state === 'refused', 'refused');
      const [event] = scene.eventsOf('CPUMaskRefused');
      assert.equal(event?.on, 'VirtualMachineInstance/vm');
      assert.match(event?.message ?? '', new RegExp(`the CPU mask ${mask}: expected the threads of vCPUs 0 to`));
      assert.deepEqual([vcpusOf(vm, 3), scene.affinity.sets], [['0-7', '0-7', '0-7'], []]);
    });
  }

  it('M4: a gap in the vCPUs is refused, and so is QEMU without named threads', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1', cpuset: '0-7' });
    const plain = scene.addVm({ vcpus: 0, mask: '1', cpuset: '0-7' });
    const process = scene.processes.get(vm.pid)!;
    process.threads.set(vm.threads.get('CPU 1/KVM')!, 'CPU 5/KVM');
    const vms = scene.create();
    run(vms);
    await new Promise((resolve) => setTimeout(resolve, 30));
    scene.pass(2001);
    await eventually(() => vms.pinning().length === 2, 'refused');
    const messages = new Map(vms.pinning().map(({ podUID, message }) => [podUID, message]));
    assert.match(messages.get(vm.uid) ?? '', /expected the threads of vCPUs 0 to 1, found those of 0, 5/);
    assert.match(messages.get(plain.uid) ?? '', /debug-threads=on/);
    assert.deepEqual(scene.affinity.sets, []);
  });

  it('M10: a mask reaches only CPUs of the pod’s cpuset that are not reserved and not owned by another pod', async () => {
    const scene = createScene(temp());
    scene.hold('other', '4-5');
    scene.view = { reserved: set('0-1') };
    // The cpuset of the shared pool still includes CPUs that the kubelet has just given to another pod.
    const vm = scene.addVm({ vcpus: 2, mask: '0-63:all', cpuset: '0-9' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    assert.deepEqual(vcpusOf(vm, 2), ['2-3,6-9', '2-3,6-9']);
  });

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

  it('the pins follow the shared pool; without a CPU left the VM is unpinned with an Event, and pinned again later', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ name: 'vm', vcpus: 2, mask: '2-3', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vcpusOf(vm, 2).join() === '2-3,2-3', 'pinned');
    scene.view = { owned: set('2') };
    await eventually(() => vcpusOf(vm, 2).join() === '3,3', 'CPU 2 is another pod’s');
    vm.cpuset('0-1,4-7');
    await eventually(() => vms.pinning()[0]?.state === 'unpinned', 'nothing is left');
    assert.deepEqual([vms.pinning()[0]?.reason, vcpusOf(vm, 2)], ['Empty', ['0-1,4-7', '0-1,4-7']]);
    assert.match(
      scene.eventsOf('CPUMaskNotApplied')[0]?.message ?? '',
      /leaves vCPU 0 without a CPU: the VM may use 0-1,4-7/,
    );
    vm.cpuset('0-7');
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned again');
    assert.deepEqual(vcpusOf(vm, 2), ['3', '3']);
  });

  it('pins of a previous agent are restored, too, if they can no longer be kept', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '2-3', cpuset: '0-7' });
    const first = scene.create();
    const end = run(first);
    await eventually(() => first.pinning()[0]?.state === 'pinned', 'pinned');
    await end();
    scene.view = { owned: set('2-3') };
    const second = scene.create();
    run(second);
    await eventually(() => second.pinning()[0]?.state === 'unpinned', 'unpinned');
    assert.deepEqual(vcpusOf(vm, 2), ['0-7', '0-7']);
  });

  it('a mask is refused at the start if it is empty on this node, exceeds the host, is malformed, or meets dedicated CPUs', async () => {
    const scene = createScene(temp(), 'v2 systemd', '0-2,7');
    const cases: [PretendVm, string, RegExp][] = [
      [scene.addVm({ vcpus: 1, mask: '2', cpuset: '0-1' }), 'Empty', /leaves vCPU 0 without a CPU/],
      [scene.addVm({ vcpus: 1, mask: '3', cpuset: '0-2,7' }), 'HostCPUs', /CPU 3, which is not online/],
      [scene.addVm({ vcpus: 1, mask: '1:', cpuset: '0-2,7' }), 'Parse', /entry 2 \(for vCPU 1\) is empty/],
      [scene.addVm({ vcpus: 1, mask: '1', cpuset: '1-2', pins: [1] }), 'Dedicated', /dedicated CPUs/],
    ];
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning().length === cases.length, 'refused');
    for (const [vm, reason, says] of cases) {
      const state = vms.pinning().find(({ podUID }) => podUID === vm.uid);
      assert.deepEqual([state?.state, state?.reason], ['refused', reason]);
      assert.match(state?.message ?? '', says);
    }
    assert.deepEqual(scene.affinity.sets, []);
  });

  it('M5: on a host that is too small, the override pins nothing and is reported', async () => {
    const scene = createScene(temp(), 'v2 systemd', '0-3');
    const vm = scene.addVm({ vcpus: 2, mask: '0:7', fix: true, cpuset: '0-3' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'looked at');
    assert.deepEqual([vms.pinning()[0]?.reason, vcpusOf(vm, 2)], ['FellBack', ['0-3', '0-3']]);
    assert.match(scene.eventsOf('CPUMaskFellBack')[0]?.message ?? '', /fix-cpu-mismatch/);
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

  it('another process with the same pid and a hotplugged vCPU are pinned again', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1-2', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vcpusOf(vm, 2).join() === '1-2,1-2', 'pinned');
    const process = scene.processes.get(vm.pid)!;
    scene.affinity.masks.set(5000, set('0-7'));
    process.threads.set(5000, 'CPU 2/KVM');
    await eventually(() => String(scene.affinity.masks.get(5000)) === '1-2', 'the vCPU that was plugged in');
    assert.equal(vms.pinning()[0]?.vcpus, 3);
    scene.processes.set(vm.pid, { ...process, start: 99, threads: new Map([...process.threads].slice(0, 4)) });
    vm.put('CPU 0/KVM', '0-7');
    await eventually(() => vcpusOf(vm, 1).join() === '1-2', 'the new process');
    await eventually(() => vms.pinning()[0]?.vcpus === 1, 'its one vCPU');
  });

  it('foreign changes are corrected, and an unchanged node causes no system calls', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vcpusOf(vm, 2).join() === '1,3', 'pinned');
    vm.put('CPU 1/KVM', '0-7');
    await eventually(() => vcpusOf(vm, 2).join() === '1,3', 'pinned again');
    const calls = scene.affinity.sets.length;
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(scene.affinity.sets.length, calls);
  });

  it('no thread stays pinned if the kernel refuses one, and the refusal is reported', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
    scene.affinity.forbidden.add(vm.threads.get('CPU 1/KVM')!);
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'refused', 'refused');
    assert.deepEqual([vms.pinning()[0]?.reason, vcpusOf(vm, 2)], ['System', ['0-7', '0-7']]);
    assert.match(vms.pinning()[0]?.message ?? '', /EPERM.*CAP_SYS_NICE/);
  });

  it('M6: VMs pinned to the same CPUs are reported on the node, but not vCPUs that may run anywhere', async () => {
    const scene = createScene(temp());
    const a = scene.addVm({ name: 'a', vcpus: 2, mask: '1:3', cpuset: '0-7' });
    scene.addVm({ name: 'b', vcpus: 2, mask: '3-4:all', cpuset: '0-7' });
    scene.addVm({ name: 'c', vcpus: 1, mask: '7', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => scene.eventsOf('CPUMasksOverlap').length > 0, 'reported');
    const [event] = scene.eventsOf('CPUMasksOverlap');
    assert.deepEqual(
      [event?.on, event?.message],
      ['Node/worker-1', 'virtual machines share CPUs: team-a/a and team-a/b on 3'],
    );
    assert.deepEqual(vms.status().overlaps, [{ vms: ['team-a/a', 'team-a/b'], cpus: '3' }]);
    scene.annotate(a, { [CPU_MASK_ANNOTATION]: '0:1' });
    await eventually(() => vms.status().overlaps.length === 0, 'no more');
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

  for (const after of ['all', undefined] as const) {
    it(`the next agent undoes a mask that is ${after ?? 'removed'} while the agent is replaced`, async () => {
      const scene = createScene(temp());
      const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
      const whole = scene.addVm({ vcpus: 2, mask: '5', cpuset: '0-7' });
      const other = scene.addVm({ vcpus: 1, cpuset: '0-7' });
      other.put('CPU 0/KVM', '6');
      const first = scene.create();
      const end = run(first);
      await eventually(() => first.pinning().length === 2, 'pinned');
      await end();
      const annotations = after === undefined ? {} : { [CPU_MASK_ANNOTATION]: after };
      scene.annotate(vm, annotations);
      scene.annotate(whole, annotations);
      const second = scene.create();
      run(second);
      await eventually(() => vcpusOf(vm, 2).join() === '0-7,0-7', 'the list is undone');
      await eventually(() => vcpusOf(whole, 2).join() === '0-7,0-7', 'the single entry is undone');
      assert.deepEqual(
        [...whole.threads.keys()].map(whole.allowed),
        [...whole.threads.keys()].map(() => '0-7'),
      );
      assert.equal(other.allowed('CPU 0/KVM'), '6', 'what others pinned is left alone');
      assert.deepEqual(second.pinning(), []);
      // It was undone once: later pins of other processes stay.
      vm.put('CPU 0/KVM', '2');
      await new Promise((resolve) => setTimeout(resolve, 60));
      assert.equal(vm.allowed('CPU 0/KVM'), '2');
    });
  }

  it('another process with the pid of a pinned one, or a record of another boot, undoes nothing', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 1, mask: '1', cpuset: '0-7' });
    const first = scene.create();
    const end = run(first);
    await eventually(() => vcpusOf(vm, 1).join() === '1', 'pinned');
    await end();
    scene.annotate(vm, {});
    scene.processes.set(vm.pid, { ...scene.processes.get(vm.pid)!, start: 99 });
    const second = scene.create();
    const stop = run(second);
    await new Promise((resolve) => setTimeout(resolve, 60));
    await stop();
    assert.equal(vcpusOf(vm, 1).join(), '1');
  });

  it('an unreadable or unwritable record is logged, and masks are applied anyway', async () => {
    const directory = temp();
    const scene = createScene(directory);
    mkdirSync(join(directory, 'state/vm-pins.json'), { recursive: true });
    const vm = scene.addVm({ vcpus: 1, mask: '1', cpuset: '0-7' });
    run(scene.create());
    await eventually(() => vcpusOf(vm, 1).join() === '1', 'pinned');
    const logged = scene.lines.map((line) => JSON.stringify(line)).join('\n');
    assert.match(logged, /reading which VMs were pinned failed/);
    assert.match(logged, /saving which VMs are pinned failed/);
  });

  it('a fallback leaves no vCPU on the CPUs of an earlier mask', async () => {
    const scene = createScene(temp(), 'v2 systemd', '0-7');
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', fix: true, cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vcpusOf(vm, 2).join() === '1,3', 'pinned');
    scene.annotate(vm, { [CPU_MASK_ANNOTATION]: '1:60', [FIX_CPU_MISMATCH_ANNOTATION]: 'true' });
    await eventually(() => vms.pinning()[0]?.reason === 'FellBack', 'fell back');
    assert.deepEqual(vcpusOf(vm, 2), ['0-7', '0-7']);
  });

  it('an unpinned vCPU may use CPUs that its container gets later', async () => {
    const scene = createScene(temp());
    // Its mask is the whole container: nothing had to move, and the kernel keeps it in that set anyway.
    const vm = scene.addVm({ vcpus: 1, mask: '0-1', cpuset: '0-1' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    vm.put('CPU 0/KVM', '0-1');
    scene.annotate(vm, { [CPU_MASK_ANNOTATION]: 'all' });
    await eventually(() => vms.pinning().length === 0, 'released');
    vm.cpuset('0-7');
    assert.deepEqual(vcpusOf(vm, 1), ['0-7']);
  });

  it('a mask of one entry pins every thread of QEMU, one of several entries only vCPUs; a change restores the others', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '2-3', cpuset: '0-7', ioPins: [6] });
    const vms = scene.create();
    run(vms);
    const others = ['qemu-system-x86', 'IO mon_iothread', 'vnc_worker', 'IO iothread1'];
    await eventually(() => others.map(vm.allowed).join() === '2-3,2-3,2-3,2-3', 'the whole VM');
    assert.deepEqual(vcpusOf(vm, 2), ['2-3', '2-3']);
    const [status] = vms.status().vms;
    assert.ok(status?.threads.every(({ desired, allowed }) => desired === '2-3' && allowed === '2-3'));
    assert.match(scene.eventsOf('CPUMaskApplied')[0]?.message ?? '', /CPU mask 2-3: the whole VM on 2-3$/);
    vm.put('vnc_worker', '0-7');
    await eventually(() => vm.allowed('vnc_worker') === '2-3', 'the pin is restored');
    scene.annotate(vm, { [CPU_MASK_ANNOTATION]: '1:3' });
    await eventually(() => vcpusOf(vm, 2).join() === '1,3', 'a list');
    assert.deepEqual(others.map(vm.allowed), ['0-7', '0-7', '0-7', '0-7']);
  });

  it('threads other than vCPUs that the kernel does not move are reported, and the rest is pinned', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1', cpuset: '0-7' });
    scene.affinity.forbidden.add(vm.threads.get('vnc_worker')!);
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    assert.deepEqual([vcpusOf(vm, 2), vm.allowed('qemu-system-x86')], [['1', '1'], '1']);
    assert.equal(vms.pinning()[0]?.reason, 'ThreadsLeft');
    assert.match(
      vms.pinning()[0]?.message ?? '',
      /leaves 1 threads other than vCPUs elsewhere, such as \d+ \(vnc_worker\) on 0-7/,
    );
  });

  it('a starting VM is pinned as soon as its threads appear, not at the next check', async () => {
    const scene = createScene(temp());
    const steady = scene.addVm({ vcpus: 1, mask: '3', cpuset: '0-7' });
    const vm = scene.addVm({ vcpus: 2, mask: '1', cpuset: '0-7' });
    const process = scene.processes.get(vm.pid)!;
    const all = [...process.threads];
    process.threads.clear();
    process.threads.set(vm.pid, 'qemu-system-x86');
    const looks = new Map<number, number>();
    const list = (pid: number) => {
      looks.set(pid, (looks.get(pid) ?? 0) + 1);
      return scene.deps.threads.list(pid);
    };
    // Only the start of the VM triggers a check within a minute.
    run(scene.create({ checkInterval: 60, threads: { ...scene.deps.threads, list } }));
    await eventually(() => vcpusOf(steady, 1).join() === '3' && (looks.get(vm.pid) ?? 0) > 3, 'looks for its threads');
    for (const [tid, name] of all) process.threads.set(tid, name);
    await eventually(() => vcpusOf(vm, 2).join() === '1,1', 'pinned');
    assert.equal(looks.get(steady.pid), 2, 'a VM that runs is not looked at for that');
  });

  it('no mask is applied while the reserved CPUs are unknown', async () => {
    const scene = createScene(temp());
    scene.view = { reserved: undefined };
    const vm = scene.addVm({ vcpus: 1, mask: '0-1', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.deepEqual([vms.pinning(), vcpusOf(vm, 1)], [[], ['0-7']]);
    scene.view = { reserved: set('0') };
    await eventually(() => vcpusOf(vm, 1).join() === '1', 'pinned');
  });

  it('no cgroup is created or written for a mask', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const before = readdirSync(vm.path);
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    assert.deepEqual(readdirSync(vm.path), before);
    assert.equal(readFileSync(join(vm.path, 'cpuset.cpus'), 'utf8'), '0-7\n');
    assert.ok(!existsSync(join(vm.path, 'housekeeping')));
  });
});
