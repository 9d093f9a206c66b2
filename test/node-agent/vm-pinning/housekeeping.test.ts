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

  for (const layout of ['v2 systemd', 'v1 cgroupfs'] as const) {
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
});
