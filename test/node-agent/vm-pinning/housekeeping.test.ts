import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VmPinning } from '../../../node-agent/vm-pinning/vm-pinning.ts';
import { eventually, tempDirectories } from '../support.ts';
import { createScene, type PretendVm } from './stage.ts';

const temp = tempDirectories();
const EMULATOR = ['qemu-system-x86', 'IO mon_iothread', 'vnc_worker'];
const emulatorOf = (vm: PretendVm) => [...new Set(EMULATOR.map((name) => vm.allowed(name)))].join();

/** The pins of virt-launcher on a host whose CPU n has the sibling n+16. */
const FOUR_BY_TWO = { vcpus: 8, cpuset: '1-5,17-21', pins: [1, 17, 2, 18, 3, 19, 4, 20] };

describe('the CPUs of the emulator', () => {
  const controllers: AbortController[] = [];
  const run = (vms: VmPinning) => {
    const controller = new AbortController();
    controllers.push(controller);
    void vms.run(controller.signal);
  };
  afterEach(() => {
    for (const controller of controllers.splice(0)) controller.abort();
  });

  for (const layout of ['v2 systemd', 'v1 cgroupfs', 'v2 crun'] as const) {
    it(`M8: 4 cores of 2 threads in {1,17,2,18,3,19,4,20,5,21}: {5,21} (${layout})`, async () => {
      const scene = createScene(temp(), layout);
      const vm = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
      run(scene.create());
      await eventually(() => vm.housekeeping.get() === '5,21' && emulatorOf(vm) === '5,21', 'both siblings');
      assert.deepEqual(
        FOUR_BY_TWO.pins.map((_, i) => Number(vm.allowed(`CPU ${i}/KVM`))),
        FOUR_BY_TWO.pins,
      );
      assert.equal(readFileSync(join(vm.path, 'cpuset.cpus'), 'utf8'), '1-5,17-21\n');
      assert.deepEqual(readdirSync(join(vm.path, 'housekeeping')), ['cpuset.cpus']);
    });
  }

  it('M8: 7 cores of 1 thread in 8 CPUs: it stays {20}, without a system call', async () => {
    const scene = createScene(temp());
    const pins = [1, 17, 2, 18, 3, 19, 4];
    const vm = scene.addVm({ vcpus: 7, cpuset: '1-4,17-20', pins, housekeeping: '20' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.status().vms[0]?.housekeeping === '20', 'looked at');
    assert.deepEqual([vm.housekeeping.get(), emulatorOf(vm), scene.affinity.sets], ['20', '20', []]);
  });

  it('M8: with a supplemental pool of 2, IO threads get back their pins, which virt-handler’s cgroup had hidden', async () => {
    const scene = createScene(temp());
    // 8 vCPUs, 2 IO threads, the emulator, and one CPU that completes a core.
    const vm = scene.addVm({ ...FOUR_BY_TWO, cpuset: '1-6,17-22', ioPins: [5, 21], housekeeping: '6' });
    assert.equal(vm.allowed('IO iothread1'), '6');
    run(scene.create());
    await eventually(() => emulatorOf(vm) === '6,22', 'the emulator');
    assert.deepEqual([vm.allowed('IO iothread1'), vm.allowed('IO iothread2')], ['5', '21']);
    assert.equal(vm.housekeeping.get(), '5-6,21-22');
  });

  it('M8: kernels before 6.2 forget these pins, which are computed with the launcher’s algorithm', async () => {
    const scene = createScene(temp());
    scene.affinity.forgets = true;
    const vm = scene.addVm({ ...FOUR_BY_TWO, cpuset: '1-6,17-22', ioPins: [5, 21], housekeeping: '6' });
    for (const name of vm.threads.keys()) vm.allowed(name);
    run(scene.create());
    for (let round = 0; round < 3; round++) {
      await eventually(() => emulatorOf(vm) === '6,22', 'the emulator');
      assert.deepEqual([vm.allowed('IO iothread1'), vm.allowed('IO iothread2')], ['5', '21']);
      assert.equal(vm.housekeeping.get(), '5-6,21-22');
      vm.housekeeping.set('6');
      for (const name of EMULATOR) vm.put(name, '6');
      assert.equal(vm.allowed('IO iothread2'), '6');
    }
  });

  it('M8: the computed pins belong to IO threads by the numbers in their names, not by their age', async () => {
    const scene = createScene(temp());
    scene.affinity.forgets = true;
    const vm = scene.addVm({ ...FOUR_BY_TWO, cpuset: '1-6,17-22', ioPins: [5, 21], housekeeping: '6' });
    const { threads } = scene.processes.get(vm.pid)!;
    const [first, two] = ['IO iothread1', 'IO iothread2'].map((name) => vm.threads.get(name)!);
    for (const [name, tid] of [
      ['IO iothread10', first!],
      ['IO iothread9', two!],
    ] as const) {
      vm.threads.set(name, tid);
      threads.set(tid, name);
    }
    for (const name of vm.threads.keys()) vm.allowed(name);
    run(scene.create());
    await eventually(() => emulatorOf(vm) === '6,22', 'the emulator');
    assert.deepEqual([vm.allowed('IO iothread9'), vm.allowed('IO iothread10')], ['5', '21']);
  });

  it('M8: are the same if vCPU threads were not created in the order of their numbers', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    const { threads } = scene.processes.get(vm.pid)!;
    const names = FOUR_BY_TWO.pins.map((_, i) => `CPU ${i}/KVM`);
    const tids = names.map((name) => vm.threads.get(name)!).reverse();
    for (const [i, name] of names.entries()) {
      vm.threads.set(name, tids[i]!);
      threads.set(tids[i]!, name);
    }
    run(scene.create());
    await eventually(() => emulatorOf(vm) === '5,21', 'the emulator');
  });

  it('a thread named as a vCPU with an absurd number affects no other VM', async () => {
    const scene = createScene(temp());
    const odd = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    scene.processes.get(odd.pid)?.threads.set(odd.threads.get('vnc_worker')!, 'CPU 9999999/KVM');
    const vm = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    run(scene.create());
    await eventually(() => emulatorOf(vm) === '5,21', 'the other one');
    assert.deepEqual([odd.housekeeping.get(), emulatorOf(odd)], ['5', '5']);
  });

  it('exclude the CPU of a pinned IO thread and ignore an unpinned one', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ ...FOUR_BY_TWO, ioPins: [5], housekeeping: '5' });
    run(scene.create());
    await eventually(() => emulatorOf(vm) === '21', 'what the IO thread leaves');
    assert.deepEqual([vm.allowed('IO iothread1'), vm.housekeeping.get()], ['5', '5,21']);
    const free = scene.addVm({ ...FOUR_BY_TWO, ioPins: [5], housekeeping: '5' });
    free.put('IO iothread1', '5,21');
    await eventually(() => emulatorOf(free) === '5,21', 'all of it');
  });

  it('M8: are restored each time that virt-handler rewrites them', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    run(scene.create());
    for (let i = 0; i < 5; i++) {
      await eventually(() => vm.housekeeping.get() === '5,21' && emulatorOf(vm) === '5,21', `round ${i}`);
      vm.housekeeping.set('5');
      for (const name of EMULATOR) vm.put(name, '5');
    }
  });

  it('M8: are computed again after a new cpuset and after hotplug from 8 to 9 to 16 vCPUs', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    run(scene.create());
    await eventually(() => emulatorOf(vm) === '5,21', 'at first');
    const move = (cpuset: string, pins: readonly number[], emulator: string) => {
      vm.cpuset(cpuset);
      vm.housekeeping.set(emulator);
      pins.forEach((cpu, i) => {
        const name = `CPU ${i}/KVM`;
        const tid = vm.threads.get(name) ?? 7000 + i;
        vm.threads.set(name, tid);
        scene.processes.get(vm.pid)?.threads.set(tid, name);
        vm.put(name, String(cpu));
      });
      for (const name of EMULATOR) vm.put(name, emulator);
    };
    move('8-12,24-28', [8, 24, 9, 25, 10, 26, 11, 27], '12');
    await eventually(() => emulatorOf(vm) === '12,28' && vm.housekeeping.get() === '12,28', 'the other cpuset');
    move('8-12,24-28', [8, 24, 9, 25, 10, 26, 11, 27, 12], '28');
    await eventually(() => emulatorOf(vm) === '28' && vm.housekeeping.get() === '28', '9 vCPUs');
    const sixteen = Array.from({ length: 8 }, (_, i) => [8 + i, 24 + i]).flat();
    move('8-16,24-32', sixteen, '16');
    await eventually(() => emulatorOf(vm) === '16,32' && vm.housekeeping.get() === '16,32', '16 vCPUs');
  });

  it('stay unchanged without the cgroup, before each vCPU is pinned to one CPU, and if vCPUs may use all CPUs', async () => {
    const scene = createScene(temp());
    const none = scene.addVm({ ...FOUR_BY_TWO });
    const early = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    early.put('CPU 3/KVM', '1-5,17-21');
    const full = scene.addVm({ vcpus: 2, cpuset: '30-31', pins: [30, 31], housekeeping: '30' });
    const last = scene.addVm({ ...FOUR_BY_TWO, housekeeping: '5' });
    run(scene.create());
    await eventually(() => emulatorOf(last) === '5,21', 'looked at all of them');
    assert.deepEqual(
      [emulatorOf(none), emulatorOf(early), early.housekeeping.get(), full.housekeeping.get()],
      ['1-5,17-21', '5', '5', '30'],
    );
    assert.ok(!readdirSync(none.path).includes('housekeeping'));
  });

  it('are reported on the VM if the kernel refuses them', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ name: 'vm', ...FOUR_BY_TWO, housekeeping: '5' });
    scene.affinity.forbidden.add(vm.threads.get('vnc_worker')!);
    const vms = scene.create();
    run(vms);
    await eventually(() => scene.eventsOf('HousekeepingIncomplete').length > 0, 'the Event is written');
    assert.match(scene.events[0]?.message ?? '', /1 threads cannot move to their CPUs, such as \d+ to 5,21/);
    const [status] = vms.status().vms;
    const odd = status?.threads.filter(({ desired, allowed }) => desired !== null && desired !== allowed);
    assert.deepEqual(
      odd?.map(({ name, desired, allowed }) => [name, desired, allowed]),
      [['vnc_worker', '5,21', '5']],
    );
  });
});
