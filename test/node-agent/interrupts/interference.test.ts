import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { Interference } from '../../../node-agent/interrupts/interference.ts';
import { CgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import { set, settableView, tempDirectories, testMetrics, useDuties, valuesOf, writeTree } from '../support.ts';

const UID = '00000000-0000-0000-0000-000000000001';
const NAME = { namespace: 'demo', podName: 'virt-launcher-a' };
const CGROUP = `cgroup/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-containerd-c0ffee.scope`;

const guest: ReturnType<ConstructorParameters<typeof Interference>[0]['guests']>[number] = {
  launcher: { uid: UID, namespace: 'demo', podName: 'virt-launcher-a', vmi: { name: 'a' }, containerId: 'c0ffee' },
  pid: 77,
  threads: [
    { tid: 77, role: { kind: 'emulator' } },
    { tid: 78, role: { kind: 'vcpu', index: 0 } },
    { tid: 79, role: { kind: 'vcpu', index: 1 } },
    { tid: 80, role: { kind: 'io' } },
  ],
};

const owned: AssignmentsView = {
  ...UNKNOWN_VIEW,
  assignments: [{ podUID: UID, container: 'compute', cpus: set('2-3'), name: undefined }],
  owned: set('2-3'),
};

/** Milliseconds and ticks of the machine and the VM. */
interface Counted {
  readonly irq?: number;
  readonly softirq?: number;
  readonly pressure?: number;
  readonly delay?: number;
  readonly io?: number;
  readonly net?: number;
}

describe('what is taken from VMs', () => {
  const temp = tempDirectories();
  const duties = useDuties();

  const node = () => {
    const root = temp();
    const metrics = testMetrics();
    let at = 1000;
    const assignments = settableView(owned);
    const write = ({ irq = 0, softirq = 0, pressure, delay = 0, io = 0, net = 0 }: Counted) =>
      writeTree(root, {
        'proc/interrupts': `  CPU0 CPU1 CPU2 CPU3\n 38: 500 0 ${net} 0 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0\nLOC: 9 9 9 9 Local timer interrupts\n`,
        'proc/softirqs': `  CPU0 CPU1 CPU2 CPU3\n NET_RX: 500 0 ${net * 2} 0\n`,
        'proc/stat': `cpu  1 1 1 1 1 ${irq} ${softirq} 0\ncpu2 1 1 1 1 1 ${irq} ${softirq} 0\ncpu3 1 1 1 1 1 0 0 0\n`,
        'proc/77/task/77/schedstat': '1000000000 5 5\n',
        'proc/77/task/78/schedstat': `5000000000 ${delay * 1e6} 5\n`,
        'proc/77/task/79/schedstat': '5000000000 0 5\n',
        'proc/77/task/80/schedstat': `${io * 1e6} 5 5\n`,
        'sys/bus/pci/devices/0000:00:03.0/virtio2/net/eth7/mtu': '1500',
        [`${CGROUP}/cgroup.procs`]: '77\n',
        'cgroup/cgroup.controllers': 'cpuset\n',
        ...(pressure !== undefined && { [`${CGROUP}/irq.pressure`]: `full avg10=0.00 total=${pressure * 1000}\n` }),
      });
    write({});
    const duty = new Interference({
      procRoot: join(root, 'proc'),
      sysfsRoot: join(root, 'sys'),
      tree: new CgroupTree(join(root, 'cgroup')),
      guests: () => [guest],
      nowSeconds: () => at,
      metrics,
      assignments,
    });
    return {
      duty,
      metrics,
      root,
      set view(next: AssignmentsView) {
        assignments.set(next);
      },
      /** The next reading, 30 s later. */
      async read(counted: Counted) {
        write(counted);
        at += 30;
        duty.read();
        return duty.vms()[0];
      },
    };
  };

  const tables = [
    { label: 'irq.pressure', pressure: 6000, quality: 'exact', interrupts: 3 },
    { label: 'a kernel that accounts interrupts', irq: 300, softirq: 300, quality: 'sampled', interrupts: 3 },
    { label: 'a kernel that samples softirqs', softirq: 600, quality: 'softirqs-sampled', interrupts: 3 },
    { label: 'a kernel that counts no time', quality: 'counts', interrupts: null },
  ] as const;
  for (const { label, quality, interrupts, ...counted } of tables) {
    it(`has the time of interrupts from ${label}`, async () => {
      const { read } = node();
      const half = Object.fromEntries(Object.entries(counted).map(([key, value]) => [key, value / 2]));
      await read({ ...half, delay: 100 });
      const vm = await read({ ...counted, delay: 400, io: 50 });
      assert.equal(vm?.quality, quality);
      const times = { seconds: 30, interrupts, runDelay: 0.3, own: 0.05 };
      assert.deepEqual(vm.lastMinute, times);
      assert.equal(vm.share?.toFixed(4), (((interrupts ?? 0) + 0.3) / 60).toFixed(4));
    });
  }

  it('counts since the start of the VM what the kernel counts for the VM alone', async () => {
    const { read } = node();
    await read({ pressure: 60_000, delay: 5000 });
    const vm = await read({ pressure: 61_000, delay: 6000 });
    assert.deepEqual(vm?.sinceStart, { seconds: 30, interrupts: 61, runDelay: 6, own: 1 });
  });

  it('does not count what interrupts took from the CPUs before the VM had them', async () => {
    const { read } = node();
    await read({ irq: 900, softirq: 900 });
    assert.equal((await read({ irq: 950, softirq: 900 }))?.sinceStart.interrupts, 0.5);
  });

  it('names the most frequent sources with their device', async () => {
    const { read } = node();
    await read({ net: 10 });
    const vm = await read({ net: 40 });
    assert.deepEqual(vm?.sources, [
      { id: 'NET_RX', name: '', devices: [], count: 60 },
      { id: '38', name: 'virtio2-input.0', devices: ['eth7'], count: 30 },
    ]);
  });

  it('publishes counters that only grow, and removes them with the VM', async () => {
    const scene = node();
    duties(scene.duty);
    await scene.read({ pressure: 1000, delay: 10 });
    await scene.read({ pressure: 1500, delay: 30 });
    const { vmInterrupts, vmRunDelay, vmStolenShare } = scene.metrics;
    assert.deepEqual(await valuesOf(vmInterrupts), { 'demo,a': 1.5 });
    assert.deepEqual(await valuesOf(vmRunDelay), { 'demo,a': 0.03 });
    assert.equal((await valuesOf(vmStolenShare))['demo,a']?.toFixed(4), '0.0087');
    scene.view = { ...owned, assignments: [] };
    for (const metric of [vmInterrupts, vmRunDelay, vmStolenShare]) assert.deepEqual(await valuesOf(metric), {});
  });

  it('reports a VM that lost more than 1 % at each reading of ten minutes, in steps', async () => {
    const scene = node();
    scene.view = { ...owned, assignments: owned.assignments.map((one) => ({ ...one, name: NAME })) };
    const changes: unknown[] = [];
    scene.duty.subscribe(() => changes.push(scene.duty.disturbed()));
    let pressure = 0;
    const minutes = async (count: number, milliseconds: number) => {
      for (let i = 0; i < 2 * count; i++) {
        pressure += milliseconds;
        await scene.read({ pressure });
      }
    };
    // Of 30 s of two CPUs, 1.8 s are 3 %.
    await minutes(10, 1800);
    assert.deepEqual(changes, []);
    await minutes(1, 1800);
    const reported = { podUID: UID, ...NAME, percent: 2 };
    assert.deepEqual(changes, [[reported]]);
    await minutes(5, 1900);
    assert.deepEqual(changes, [[reported]], 'the same step is no change');
    await minutes(0.5, 100);
    assert.deepEqual(changes, [[reported], []]);
  });

  it('reads nothing on a node without VMs, and says what it cannot read', async () => {
    const scene = node();
    scene.view = { ...owned, assignments: [] };
    writeTree(scene.root, { 'proc/interrupts': '' });
    scene.duty.read();
    assert.deepEqual([scene.duty.vms(), scene.duty.problems], [[], []]);
    scene.view = owned;
    scene.duty.read();
    const problem = `${join(scene.root, 'proc/interrupts')} is empty: the container runtime masks it`;
    assert.deepEqual(scene.duty.problems, [problem]);
  });
});
