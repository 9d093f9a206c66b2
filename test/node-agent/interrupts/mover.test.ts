import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { set, valuesOf } from '../support.ts';
import { useStages } from './stage.ts';

describe('the state of work of the kernel', () => {
  const { movedAt, stageAt } = useStages();

  const errors: readonly (readonly [label: string, code: string, state: string])[] = [
    ['the mask is the kernel’s, since Linux 6.11', 'EPERM', 'managed'],
    ['the mask is the kernel’s, before', 'EIO', 'managed'],
    ['no CPU of the mask is online', 'EINVAL', 'refused EINVAL'],
    ['no CPU has a free vector', 'ENOSPC', 'refused ENOSPC'],
    ['the kernel is busy', 'EBUSY', 'refused EBUSY'],
    ['/proc is mounted read-only', 'EROFS', 'refused EROFS'],
    ['a security module forbids it', 'EACCES', 'refused EACCES'],
  ];
  for (const [label, code, state] of errors) {
    it(`state of an interrupt whose mask cannot be written: ${label}`, async () => {
      const { kernel, start, own, states } = stageAt();
      kernel.irq(40, { cpus: '2', action: 'a' });
      kernel.errors.set('/proc/irq/40/smp_affinity_list', code);
      await start();
      await own('2-3');
      assert.deepEqual([states(), kernel.mask(40)], [[`40 a: ${state}`], '2']);
    });
  }

  it('states: moved, pending, managed by mode', async () => {
    const { kernel, start, own, states } = stageAt();
    for (const number of [40, 41, 42]) kernel.irq(number, { cpus: '2', action: `q${number}` });
    kernel.readOnly.add('/proc/irq/42/smp_affinity_list');
    await start();
    await own('2-3');
    // No interrupt has arrived since the write.
    kernel.change('/proc/irq/41/effective_affinity_list', '2');
    assert.deepEqual(states(), ['40 q40: moved', '41 q41: pending', '42 q42: managed']);
  });

  it('tries a refused write again after 30 s, not at each pass', async () => {
    const { kernel, start, own, later, metrics } = stageAt();
    kernel.irq(40, { cpus: '2', action: 'a' });
    kernel.errors.set('/proc/irq/40/smp_affinity_list', 'EINVAL');
    await start();
    await own('2-3');
    await later(10);
    assert.deepEqual(await valuesOf(metrics.interruptWrites), { 'irq,EINVAL': 1 });
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

  it('what inherits a narrowed value has the original of its parent', async () => {
    const { kernel, kthreads, start, own, later, release } = stageAt();
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
    await release();
    assert.deepEqual([kernel.mask(40), String(kthreads.masks.get(20))], ['0-7', '0-7']);
  });

  it('a kernel thread that lost CPUs by hotplug or a partition still gets its original back', async () => {
    const { kernel, kthreads, start, own, later, stage, release } = stageAt();
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
    await release();
    assert.equal(String(kthreads.masks.get(2)), '0-7');
  });

  it('changes only its own bits of the mask of new interrupts', async () => {
    const { kernel, start, own, later, release } = stageAt();
    const path = '/proc/irq/default_smp_affinity';
    kernel.put(path, 'ff');
    await start();
    await own('2-3');
    // CRI-O takes CPUs 6 and 7 for a container.
    kernel.change(path, '33');
    await later(1.5);
    assert.equal(kernel.text(path), '33');
    await release();
    assert.equal(kernel.text(path), '3f');
  });

  it('an interrupt that is requested right after a change of that mask gets the agent’s own bits back', async () => {
    const { kernel, start, own, later, release } = stageAt();
    kernel.put('/proc/irq/default_smp_affinity', 'ff');
    await start();
    await own('2-3');
    kernel.change('/proc/irq/default_smp_affinity', '33');
    kernel.irq(40, { cpus: '0-1,4-5', action: 'a' });
    await later(1.5);
    await release();
    assert.equal(kernel.mask(40), '0-5');
  });

  describe('other writers', () => {
    it('a driver that requests the interrupt again: its mask is the new original', async () => {
      const { kernel, later, events, release } = await movedAt({ cpus: '2', owned: '2-3' });
      for (let i = 0; i < 3; i++) {
        kernel.irq(40, { cpus: '3', action: 'a' });
        await later(1.5);
        assert.equal(kernel.mask(40), '0-1,4-7');
      }
      assert.deepEqual(events, []);
      await release();
      assert.equal(kernel.mask(40), '3');
    });

    it('hotplug that resets masks is no other writer', async () => {
      const { kernel, later, events, stage } = await movedAt({ cpus: '2', owned: '2-3' });
      for (const online of ['0-6', '0-7']) {
        stage.online = online;
        kernel.change('/proc/irq/40/smp_affinity_list', '2');
        await later(1.5);
      }
      assert.equal(kernel.mask(40), '0-1,4-7');
      assert.deepEqual(events, []);
    });

    it('a second foreign write within a minute: hands off, an Event and a metric; ten minutes later again', async () => {
      const { kernel, later, events, states, metrics } = await movedAt({ cpus: '2', owned: '2-3' });
      kernel.change('/proc/irq/40/smp_affinity_list', '3');
      await later(1.5);
      assert.equal(kernel.mask(40), '0-1,4-7');
      kernel.change('/proc/irq/40/smp_affinity_list', '3');
      await later(30);
      assert.equal(kernel.mask(40), '3');
      assert.deepEqual(states(), ['40 a: foreign']);
      assert.match(events.join(), /^InterruptsContended: another process keeps moving irq 40 a/);
      assert.deepEqual(await valuesOf(metrics.interruptsDisplaced), { irq: 2 });
      await later(601);
      assert.equal(kernel.mask(40), '0-1,4-7');
    });

    it('an agent that does not move leaves foreign values, without an Event', async () => {
      const { kernel, stage, later, end, events, states } = await movedAt({ cpus: '2', owned: '2-3' });
      await end();
      kernel.errors.set('/proc/irq/40/smp_affinity_list', 'ENOSPC');
      await stage.start({ isMoving: false });
      for (const cpus of ['3', '2-3']) {
        kernel.change('/proc/irq/40/smp_affinity_list', cpus);
        states();
        await later(1.5);
      }
      kernel.errors.clear();
      await later(31);
      assert.deepEqual([kernel.mask(40), events], ['2-3', []]);
    });

    it('foreign writes that are a minute apart are corrected', async () => {
      const { kernel, later, events } = await movedAt({ cpus: '2', owned: '2-3' });
      for (let i = 0; i < 3; i++) {
        kernel.change('/proc/irq/40/smp_affinity_list', '3');
        await later(61);
        assert.equal(kernel.mask(40), '0-1,4-7');
      }
      assert.deepEqual(events, []);
    });

    it('a foreign value without owned CPUs stays, also afterwards', async () => {
      const { kernel, later, release } = await movedAt({ cpus: '2', owned: '2-3' });
      kernel.change('/proc/irq/40/smp_affinity_list', '7');
      await later(1.5);
      await release();
      assert.equal(kernel.mask(40), '7');
    });
  });
});
