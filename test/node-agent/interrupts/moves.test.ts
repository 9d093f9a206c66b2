import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { maskText } from '../../../node-agent/interrupts/knobs.ts';
import { set, tempDirectories } from '../support.ts';
import { createStage } from './stage.ts';

describe('work of the kernel on owned CPUs', () => {
  const temp = tempDirectories();
  const stages: ReturnType<typeof createStage>[] = [];
  const stageAt = () => {
    const path = join(temp(), 'interrupts.json');
    const stage = createStage(path);
    stages.push(stage);
    return { ...stage, stage, path };
  };
  afterEach(async () => {
    for (const stage of stages.splice(0)) await stage.end();
  });

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
      const { kernel, start, own, later } = stageAt();
      kernel.irq(40, { cpus, cell, action });
      await start();
      await own(owned);
      assert.equal(kernel.mask(40), mask);
      await own('');
      await later(6);
      assert.equal(kernel.mask(40), cpus);
    });
  }

  it('computes each value from the original, so that it widens with a release', async () => {
    const { kernel, start, own, later } = stageAt();
    kernel.irq(40, { cpus: '0-7', action: 'a' });
    await start();
    await own('2-3');
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

  it('states: moved, pending, managed by mode, managed by EIO, refused with the error', async () => {
    const { kernel, start, own, states } = stageAt();
    for (const number of [40, 41, 42, 43, 44]) kernel.irq(number, { cpus: '2', action: `q${number}` });
    kernel.readOnly.add('/proc/irq/42/smp_affinity_list');
    kernel.errors.set('/proc/irq/43/smp_affinity_list', 'EIO');
    kernel.errors.set('/proc/irq/44/smp_affinity_list', 'EBUSY');
    await start();
    await own('2-3');
    // No interrupt has arrived since the write.
    kernel.change('/proc/irq/41/effective_affinity_list', '2');
    const expected = [
      '40 q40: moved',
      '41 q41: pending',
      '42 q42: managed',
      '43 q43: managed',
      '44 q44: refused EBUSY',
    ];
    assert.deepEqual(states(), expected);
  });

  it('tries a refused write again after 30 s, not at each pass', async () => {
    const { kernel, start, own, later, metric } = stageAt();
    kernel.irq(40, { cpus: '2', action: 'a' });
    kernel.errors.set('/proc/irq/40/smp_affinity_list', 'EBUSY');
    await start();
    await own('2-3');
    await later(10);
    assert.deepEqual(await metric('interrupt_writes_total'), { 'irq,EBUSY': 1 });
    kernel.errors.clear();
    await later(25);
    assert.equal(kernel.mask(40), '0-1,4-7');
  });

  it('ENOSPC: tries the CPUs of all NUMA nodes', async () => {
    const { kernel, start, own, states } = stageAt();
    kernel.irq(40, { cpus: '6', cell: 1, action: 'a' });
    const write = kernel.write.bind(kernel);
    kernel.write = (path, text) => {
      if (text === '4-5') throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      write(path, text);
    };
    await start();
    await own('6-7');
    assert.equal(kernel.mask(40), '0-5');
    assert.deepEqual(states(), ['40 a: moved']);
  });

  it('gives no CPU more than 150 interrupts', async () => {
    const { kernel, start, own, states } = stageAt();
    for (let i = 0; i < 150; i++) kernel.irq(100 + i, { cpus: '4', cell: 1, action: `b${i}` });
    kernel.irq(40, { cpus: '6', cell: 1, action: 'a' });
    await start();
    await own('6-7');
    assert.equal(kernel.mask(40), '5', 'CPU 4 is full');
    for (let i = 0; i < 150; i++) kernel.change(`/proc/irq/${100 + i}/effective_affinity_list`, '5');
    assert.deepEqual(states(), ['40 a: moved']);
  });

  it('at most 200 writes a second', async () => {
    const { kernel, start, own, later } = stageAt();
    for (let i = 0; i < 500; i++) kernel.irq(100 + i, { cpus: '2-7', action: `q${i}` });
    await start();
    await own('2-3');
    assert.equal(kernel.writes.length, 200);
    await later(1);
    assert.equal(kernel.writes.length, 400);
    await later(1);
    assert.equal(kernel.writes.length, 500);
  });

  it('CPUs are clear when a container may start, before the view shows its owner', async () => {
    const { kernel, start, own, stage } = stageAt();
    kernel.irq(40, { cpus: '0-7', action: 'a' });
    await start();
    await own('2');
    await stage.moves.vacate(set('6-7'));
    assert.equal(kernel.mask(40), '0-1,3-5');
  });

  it('moves packet steering, workqueues, kernel threads and the mask of new interrupts', async () => {
    const { kernel, kthreads, start, own, later } = stageAt();
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
    await own('');
    await later(6);
    assert.deepEqual(values(), before);
  });

  describe('what is remembered of an interface', () => {
    const NIC = '/sys/class/net';
    const rps = (nic: string) => `${NIC}/${nic}/queues/rx-0/rps_cpus`;
    const SEARCH_SECONDS = 10;

    it('follows it when it is renamed, and is not written to the one that has its name now', async () => {
      const { kernel, start, own, later } = stageAt();
      kernel.put(rps('eth0'), 'c');
      kernel.put(rps('eth1'), '30');
      await start();
      await own('2-3');
      assert.deepEqual([kernel.text(rps('eth0')), kernel.text(rps('eth1'))], ['f3', '30']);
      kernel.rename(`${NIC}/eth0`, `${NIC}/lan0`);
      kernel.rename(`${NIC}/eth1`, `${NIC}/eth0`);
      await own('');
      await later(6);
      await later(SEARCH_SECONDS);
      assert.deepEqual([kernel.text(rps('lan0')), kernel.text(rps('eth0'))], ['c', '30']);
    });

    it('is kept while it is in a pod, also for the next agent', async () => {
      const { kernel, start, own, later, stage } = stageAt();
      kernel.put(rps('eth0'), 'c');
      await start();
      await own('2-3');
      kernel.rename(`${NIC}/eth0`, '/pod/eth0');
      await later(SEARCH_SECONDS + 2);
      await own('2-3,6');
      await stage.end();
      await start();
      await own('');
      await later(6);
      kernel.rename('/pod/eth0', `${NIC}/eth7`);
      await later(SEARCH_SECONDS + 2);
      assert.equal(kernel.text(rps('eth7')), 'c');
    });

    it('ends when a driver makes it again: what it has then is its original', async () => {
      const { kernel, start, own, later } = stageAt();
      kernel.put(rps('eth0'), 'c');
      await start();
      await own('2-3');
      kernel.put(rps('eth0'), 'f3');
      await later(SEARCH_SECONDS + 2);
      await own('');
      await later(6);
      assert.equal(kernel.text(rps('eth0')), 'f3');
    });

    const irqs: [string, Partial<Parameters<ReturnType<typeof stageAt>['kernel']['irq']>[1]>, string, string][] = [
      ['has a new name', { action: 'lan0-rx-0' }, 'ice', '0-7'],
      ['has another driver', {}, 'vfio-pci', '0-1,4-7'],
      ['is another device with the number', { pci: '0000:c2:00.0' }, 'ice', '0-1,4-7'],
    ];
    for (const [label, changes, driver, expected] of irqs) {
      it(`an interrupt that an earlier agent moved, whose device ${label}, gets ${expected}`, async () => {
        const { kernel, start, own, later, stage } = stageAt();
        const irq = { cpus: '0-7', action: 'eth0-rx-0', hwirq: 7, pci: '0000:c1:00.0' };
        kernel.put('/sys/bus/pci/devices/0000:c1:00.0/driver', 'ice');
        kernel.irq(40, irq);
        await start();
        await own('2-3');
        assert.equal(kernel.mask(40), '0-1,4-7');
        await stage.end();
        kernel.put('/sys/bus/pci/devices/0000:c1:00.0/driver', driver);
        kernel.irq(40, { ...irq, cpus: '0-1,4-7', ...changes });
        await start();
        await own('2-3');
        await own('');
        await later(6);
        assert.equal(kernel.mask(40), expected);
      });
    }
  });

  it('what inherits a narrowed value has the original of its parent', async () => {
    const { kernel, kthreads, start, own, later } = stageAt();
    kernel.put('/proc/irq/default_smp_affinity', 'ff');
    kernel.put('/proc/2/task/2/children', '');
    kernel.put('/proc/2/stat', `2 (kthreadd) S 0 0 0 0 -1 0 ${'0 '.repeat(12)}0 0`);
    kthreads.masks.set(2, set('0-7'));
    await start();
    await own('2-3');
    // Twice: a driver is bound, and bound again.
    for (let i = 0; i < 2; i++) {
      kernel.irq(40, { cpus: '0-1,4-7', action: 'new' });
      await later(1.5);
    }
    kernel.put('/proc/2/task/2/children', '20');
    kernel.put('/proc/20/stat', `20 (napi/eth1-1) S 2 0 0 0 -1 0 ${'0 '.repeat(12)}9 0`);
    kthreads.masks.set(20, set('0-1,4-7'));
    await later(11);
    await own('');
    await later(6);
    assert.deepEqual([kernel.mask(40), String(kthreads.masks.get(20))], ['0-7', '0-7']);
  });

  it('a kernel thread that lost CPUs by hotplug or a partition still gets its original back', async () => {
    const { kernel, kthreads, start, own, later, stage } = stageAt();
    const isolated = '/sys/devices/virtual/workqueue/cpumask_isolated';
    kernel.put('/sys/devices/virtual/workqueue/cpumask', 'ff');
    kernel.put(isolated, '0');
    kernel.put('/proc/2/task/2/children', '');
    kernel.put('/proc/2/stat', `2 (kthreadd) S 0 0 0 0 -1 0 ${'0 '.repeat(12)}0 0`);
    kthreads.masks.set(2, set('0-7'));
    await start();
    await own('2-3');
    stage.online = '0-6';
    kthreads.masks.set(2, set('0-1,4-6'));
    await later(10);
    kernel.change(isolated, '2');
    kthreads.masks.set(2, set('0,4-6'));
    await later(10);
    await stage.end();
    await stage.start();
    // The kernel accepts a value, and leaves out the partition and what is offline.
    const original = kthreads.set.bind(kthreads);
    kthreads.set = (tid, words) => original(tid, CpuSet.fromWords(words).minus(set('1,7')).toWords(1));
    await own('2');
    await later(6);
    assert.equal(String(kthreads.masks.get(2)), '0,3-6');
    kthreads.set = original;
    kthreads.masks.set(2, set('0-1,3-7'));
    stage.online = '0-7';
    kernel.change(isolated, '0');
    await own('');
    await later(6);
    assert.equal(String(kthreads.masks.get(2)), '0-7');
  });

  it('changes only its own bits of the mask of new interrupts', async () => {
    const { kernel, start, own, later } = stageAt();
    const path = '/proc/irq/default_smp_affinity';
    kernel.put(path, 'ff');
    await start();
    await own('2-3');
    // CRI-O takes CPUs 6 and 7 for a container.
    kernel.change(path, '33');
    await later(1.5);
    assert.equal(kernel.text(path), '33');
    await own('');
    await later(6);
    assert.equal(kernel.text(path), '3f');
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

  it('writes multiple words as groups of 32 bits', () => {
    assert.deepEqual(
      [maskText(set('0-3')), maskText(set('1,33')), maskText(set('63'))],
      ['f', '2,00000002', '80000000,00000000'],
    );
  });

  describe('off is off', () => {
    for (const [how, changes] of [
      ['switched off', { isMoving: false }],
      ['killed, and switched on again without owners', {}],
    ] as const) {
      it(`an earlier agent’s originals return: ${how}`, async () => {
        const { kernel, stage, start, own, end, path } = stageAt();
        kernel.irq(40, { cpus: '2', action: 'a' });
        kernel.irq(41, { cpus: '0-7', action: 'b' });
        await start();
        await own('2-3');
        await end();
        assert.deepEqual(
          [kernel.mask(40), kernel.mask(41)],
          ['0-1,4-7', '0-1,4-7'],
          'the end of the agent leaves them',
        );
        if (changes.isMoving === undefined) await own('');
        await stage.start(changes);
        assert.deepEqual([kernel.mask(40), kernel.mask(41)], ['2', '0-7']);
        assert.equal(existsSync(path), false);
      });
    }

    it('an agent that is updated moves nothing back before it knows the owners', async () => {
      const { kernel, stage, start, own, end, later } = stageAt();
      kernel.irq(40, { cpus: '0-7', action: 'a' });
      await start();
      await own('2-3');
      await end();
      stage.unknown();
      const { length } = kernel.writes;
      await stage.start();
      await later(10);
      await own('2-3');
      assert.deepEqual([kernel.mask(40), kernel.writes.length - length], ['0-1,4-7', 0]);
      await own('');
      await later(6);
      assert.equal(kernel.mask(40), '0-7');
    });

    it('the originals are on the disk before the first write', async () => {
      const { kernel, start, own, path } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      const saved: string[] = [];
      const write = kernel.write.bind(kernel);
      kernel.write = (file, text) => {
        saved.push(readFileSync(path, 'utf8'));
        write(file, text);
      };
      await start();
      await own('2-3');
      assert.match(saved[0] ?? '', /"original":"2","written":\["0-1,4-7"\]/);
    });

    it('an agent that was killed between saving and writing leaves nothing behind', async () => {
      const { kernel, stage, start, own, end } = stageAt();
      kernel.irq(40, { cpus: '0-7', action: 'a' });
      await start();
      await own('2-3');
      kernel.errors.set('/proc/irq/40/smp_affinity_list', 'EBUSY');
      await own('2-5');
      kernel.errors.clear();
      await end();
      await stage.start({ isMoving: false });
      assert.equal(kernel.mask(40), '0-7');
    });

    it('a value that is not the agent’s any more stays', async () => {
      const { kernel, stage, start, own, end } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      await end();
      kernel.change('/proc/irq/40/smp_affinity_list', '5');
      await stage.start({ isMoving: false });
      assert.equal(kernel.mask(40), '5');
    });

    it('another device that has the number now does not get the original', async () => {
      const { kernel, stage, start, own, end } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      await end();
      kernel.irq(40, { cpus: '0-1,4-7', action: 'c', pci: '0000:c2:00.0' });
      await stage.start({ isMoving: false });
      assert.equal(kernel.mask(40), '0-1,4-7');
    });

    it('after a reboot the originals of the last boot are dropped', async () => {
      const { kernel, stage, start, own, end } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      await end();
      await stage.start({ isMoving: false, bootId: 'boot-2' });
      assert.equal(kernel.mask(40), '0-1,4-7');
    });

    it('nothing is moved that could not be undone', async () => {
      const file = join(temp(), 'file');
      writeFileSync(file, '');
      const stage = createStage(join(file, 'interrupts.json'));
      stages.push(stage);
      stage.kernel.irq(40, { cpus: '2', action: 'a' });
      await stage.start();
      await stage.own('2-3');
      assert.equal(stage.kernel.mask(40), '2');
      assert.match(stage.moves.status().problems.join(), /^nothing is moved until the originals can be saved/);
    });
  });

  describe('other writers', () => {
    it('a driver that requests the interrupt again: its mask is the new original', async () => {
      const { kernel, start, own, later, events } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      for (let i = 0; i < 3; i++) {
        kernel.irq(40, { cpus: '3', action: 'a' });
        await later(1.5);
        assert.equal(kernel.mask(40), '0-1,4-7');
      }
      assert.deepEqual(events, []);
      await own('');
      await later(6);
      assert.equal(kernel.mask(40), '3');
    });

    it('hotplug that resets masks is no other writer', async () => {
      const { kernel, start, own, later, events, stage } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      for (const online of ['0-6', '0-7']) {
        stage.online = online;
        kernel.change('/proc/irq/40/smp_affinity_list', '2');
        await later(1.5);
      }
      assert.equal(kernel.mask(40), '0-1,4-7');
      assert.deepEqual(events, []);
    });

    it('a second foreign write within a minute: hands off, an Event and a metric; ten minutes later again', async () => {
      const { kernel, start, own, later, events, states, metric } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      kernel.change('/proc/irq/40/smp_affinity_list', '3');
      await later(1.5);
      assert.equal(kernel.mask(40), '0-1,4-7');
      kernel.change('/proc/irq/40/smp_affinity_list', '3');
      await later(30);
      assert.equal(kernel.mask(40), '3');
      assert.deepEqual(states(), ['40 a: foreign']);
      assert.match(events.join(), /^InterruptsContended: another process keeps moving irq 40 a/);
      assert.deepEqual(await metric('interrupts_displaced_total'), { irq: 2 });
      await later(601);
      assert.equal(kernel.mask(40), '0-1,4-7');
    });

    it('foreign writes that are a minute apart are corrected', async () => {
      const { kernel, start, own, later, events } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      for (let i = 0; i < 3; i++) {
        kernel.change('/proc/irq/40/smp_affinity_list', '3');
        await later(61);
        assert.equal(kernel.mask(40), '0-1,4-7');
      }
      assert.deepEqual(events, []);
    });

    it('a foreign value without owned CPUs stays, also afterwards', async () => {
      const { kernel, start, own, later } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      await start();
      await own('2-3');
      kernel.change('/proc/irq/40/smp_affinity_list', '7');
      await later(1.5);
      await own('');
      await later(6);
      assert.equal(kernel.mask(40), '7');
    });

    const managed = [
      {
        label: 'tuned isolates CPUs',
        file: '/etc/tuned/active_profile',
        text: 'realtime-virtual-host',
        left: ['irq', 'default'],
      },
      {
        label: 'a PerformanceProfile',
        file: '/etc/tuned/active_profile',
        text: 'openshift-node-performance-x',
        left: ['default'],
      },
      { label: 'CRI-O bans CPUs', file: '/etc/sysconfig/orig_irq_banned_cpus', text: '0', left: ['default'] },
      { label: 'nri-plugins', file: '/proc/77/comm', text: 'nri-resource-po', left: ['irq'] },
    ];
    for (const { label, file, text, left } of managed) {
      it(`${label}: what it manages stays, and it is named`, async () => {
        const { kernel, start, own, stage } = stageAt();
        kernel.put('/proc/irq/default_smp_affinity', 'ff');
        kernel.irq(40, { cpus: '0-7', action: 'a' });
        kernel.put(file, text);
        await start();
        await own('2-3');
        const isLeft = {
          irq: kernel.mask(40) === '0-7',
          default: kernel.text('/proc/irq/default_smp_affinity') === 'ff',
        };
        assert.deepEqual(isLeft, { irq: left.includes('irq'), default: left.includes('default') });
        assert.equal(stage.moves.status().managers.length, 1);
      });
    }
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
