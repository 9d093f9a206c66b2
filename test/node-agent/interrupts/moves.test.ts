import assert from 'node:assert/strict';
import { set, turns } from '../support.ts';
import { useStages } from './stage.ts';

describe('work of the kernel on owned CPUs', () => {
  const { movedAt, stageAt } = useStages();

  const rows = [
    { label: 'a mask with other CPUs', cpus: '0-7', owned: '2-3', mask: '0-1,4-7' },
    { label: 'a mask without owned CPUs', cpus: '4-7', owned: '2-3', mask: '4-7' },
    { label: 'one owned CPU: the shared ones of its NUMA node', cpus: '6', cell: 1, owned: '6-7', mask: '4-5' },
    { label: 'one owned CPU without a NUMA node: all shared ones', cpus: '3', owned: '2-3', mask: '0-1,4-7' },
    { label: 'a NUMA node without shared CPUs: those of others', cpus: '6', cell: 1, owned: '4-7', mask: '0-3' },
    { label: 'every CPU owned: it stays', cpus: '3', owned: '0-7', mask: '3' },
    {
      label: 'a VF of a VM: shared CPUs of its node',
      cpus: '0-1',
      cell: 1,
      owned: '6-7',
      action: 'vfio-msix[1](0000:c1:00.2)',
      mask: '4-5',
    },
  ];
  for (const { label, cpus, owned, mask, cell = -1, action = 'mlx5_comp1' } of rows) {
    it(`an interrupt leaves them: ${label}; and returns`, async () => {
      const { kernel, start, own, release } = stageAt();
      kernel.irq(40, { cpus, cell, action });
      await start();
      await own(owned);
      assert.equal(kernel.mask(40), mask);
      await release();
      assert.equal(kernel.mask(40), cpus);
    });
  }

  it('computes each value from the original, so that it widens with a release', async () => {
    const { kernel, own, later } = await movedAt({ cpus: '0-7', owned: '2-3' });
    await own('2-5');
    assert.equal(kernel.mask(40), '0-1,6-7');
    await own('4-5');
    assert.equal(kernel.mask(40), '0-1,6-7', 'released CPUs stay clear for a moment');
    await later(6);
    assert.equal(kernel.mask(40), '0-3,6-7');
  });

  it('leaves interrupts without a handler, and takes them when they get one', async () => {
    const { kernel, start, own, later } = stageAt();
    kernel.irq(40, { cpus: '0-7', action: '' });
    await start();
    await own('2-3');
    assert.equal(kernel.mask(40), '0-7');
    kernel.put('/sys/kernel/irq/40/actions', 'eth0-rx-1');
    await later(1.5);
    assert.equal(kernel.mask(40), '0-1,4-7');
  });

  it('CPUs are clear when a container may start, before the view shows its owner', async () => {
    const { kernel, stage } = await movedAt({ cpus: '0-7', owned: '2' });
    await stage.moves.vacate(set('6-7'));
    assert.equal(kernel.mask(40), '0-1,3-5');
  });

  it('CPUs of a container that never gets them return', async () => {
    const { kernel, start, later, stage } = stageAt();
    kernel.irq(40, { cpus: '0-7', action: 'a' });
    await start();
    await stage.moves.vacate(set('6-7'));
    assert.equal(kernel.mask(40), '0-5');
    await later(6);
    assert.equal(kernel.mask(40), '0-7');
  });

  it('a failure while CPUs are vacated refuses the container, and restarts the duty', async () => {
    const { kernel, start, stage } = stageAt();
    kernel.irq(40, { cpus: '0-7', action: 'a' });
    await start();
    kernel.list = () => {
      throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    };
    await assert.rejects(stage.moves.vacate(set('6-7')), /EMFILE/);
    await turns();
    await assert.rejects(stage.end(), /EMFILE/);
  });

  it('a container waits while the kernel is busy', async () => {
    const { kernel, start, own, stage } = stageAt();
    kernel.irq(40, { cpus: '6', action: 'a' });
    kernel.errors.set('/proc/irq/40/smp_affinity_list', 'EBUSY');
    await start();
    await own('2');
    let isClear = false;
    const vacated = stage.moves.vacate(set('6-7')).then(() => {
      isClear = true;
    });
    await turns();
    assert.deepEqual([isClear, kernel.mask(40)], [false, '6']);
    kernel.errors.clear();
    await vacated;
    assert.equal(kernel.mask(40), '0-1,3-5');
  });

  it('a container does not start if the kernel stays busy for two seconds', async () => {
    const { kernel, start, own, later, stage } = stageAt();
    kernel.irq(40, { cpus: '6', action: 'a' });
    kernel.errors.set('/proc/irq/40/smp_affinity_list', 'EAGAIN');
    await start();
    await own('2');
    const refused = assert.rejects(stage.moves.vacate(set('6-7')), /interrupts do not leave CPUs 6-7: 40 a \(EAGAIN\)/);
    await later(2);
    await refused;
  });

  it('a container does not wait for what cannot be moved: managed, refused', async () => {
    const { kernel, start, own, stage, states } = stageAt();
    for (const number of [40, 41, 42]) kernel.irq(number, { cpus: '6', action: 'a' });
    kernel.readOnly.add('/proc/irq/40/smp_affinity_list');
    kernel.errors.set('/proc/irq/41/smp_affinity_list', 'EINVAL');
    await start();
    await own('2');
    await stage.moves.vacate(set('6-7'));
    assert.deepEqual(states(), ['40 a: managed', '41 a: refused EINVAL', '42 a: moved']);
  });

  it('an agent that does not know the owners yet clears CPUs, and gives back none that an earlier one cleared', async () => {
    const { kernel, stage } = await movedAt({ cpus: '0-7', owned: '2-3' });
    await stage.end();
    stage.unknown();
    await stage.start();
    await stage.moves.vacate(set('6-7'));
    assert.equal(kernel.mask(40), '0-1,4-5');
  });

  it('moves packet steering, workqueues, kernel threads and the mask of new interrupts', async () => {
    const { kernel, kthreads, start, own, release } = stageAt();
    kernel.put('/proc/irq/default_smp_affinity', 'ff');
    kernel.put('/sys/class/net/eth0/ifindex', 2);
    kernel.put('/sys/class/net/eth0/queues/rx-0/rps_cpus', 'c');
    kernel.put('/sys/class/net/eth0/queues/rx-1/rps_cpus', '00');
    kernel.put('/sys/devices/virtual/workqueue/cpumask', 'ff');
    kernel.put('/proc/2/task/2/children', '10 11 12 13');
    for (const [tid, name, flags] of [
      [2, 'kthreadd', 0x208040],
      [10, 'napi/eth0-1', 0x208040],
      [11, 'kworker/3:0', 0x4208060],
      [12, 'vhost-77', 0x208040],
      [13, 'kswapd0', 0x208040],
    ] as const) {
      kernel.put(`/proc/${tid}/stat`, `${tid} (${name}) S 2 0 0 0 -1 ${flags} ${'0 '.repeat(12)}${tid * 100} 0`);
      kthreads.masks.set(tid, set('0-7'));
    }
    kthreads.masks.set(13, set('2-3'));
    const values = () => [
      kernel.text('/proc/irq/default_smp_affinity'),
      kernel.text('/sys/class/net/eth0/queues/rx-0/rps_cpus'),
      kernel.text('/sys/class/net/eth0/queues/rx-1/rps_cpus'),
      kernel.text('/sys/devices/virtual/workqueue/cpumask'),
      ...[2, 10, 11, 12, 13].map((tid) => String(kthreads.masks.get(tid))),
    ];
    const before = values();
    await start();
    await own('2-3');
    const shared = '0-1,4-7';
    assert.deepEqual(values(), ['f3', 'f3', '00', 'f3', shared, shared, '0-7', '0-7', shared]);
    await release();
    assert.deepEqual(values(), before);
  });

  it('does not undo the isolation of a cpuset partition', async () => {
    const { kernel, start, own } = stageAt();
    const root = '/sys/devices/virtual/workqueue';
    kernel.put(`${root}/cpumask`, '3f');
    kernel.put(`${root}/cpumask_requested`, 'ff');
    kernel.put(`${root}/cpumask_isolated`, 'c0');
    await start();
    await own('2-3');
    assert.equal(kernel.text(`${root}/cpumask`), '33');
  });

  it('a plan without moving: what would move, and what only the kernel sets', async () => {
    const { kernel, start, own, states } = stageAt();
    kernel.irq(40, { cpus: '0-7', action: 'a' });
    kernel.irq(41, { cpus: '2', action: 'nvme0q3' });
    kernel.readOnly.add('/proc/irq/41/smp_affinity_list');
    await start({ isMoving: false });
    await own('2-3');
    assert.deepEqual(states(), ['40 a: planned', '41 nvme0q3: managed']);
    assert.deepEqual(kernel.writes, []);
  });
});
