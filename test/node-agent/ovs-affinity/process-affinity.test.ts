import assert from 'node:assert/strict';
import type { ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { set } from '../support.ts';
import { FakeKernel } from './stage.ts';

let kernel: FakeKernel;
let keeper: ProcessAffinity;
/** Three threads on sixteen CPUs. */
function fresh(): void {
  kernel = new FakeKernel();
  for (const tid of [100, 101, 102]) kernel.thread(tid, '0-15');
  keeper = kernel.keeper();
}

describe('setting the CPUs of threads', () => {
  beforeEach(fresh);

  it('moves every thread to the goal; a second pass changes nothing', () => {
    const moved = { name: 'ovs-vswitchd', threads: 3, moved: 3, displaced: 0, clipped: 0, errors: [] };
    assert.deepEqual(keeper.apply({ only: set('0-3') }), moved);
    assert.deepEqual(kernel.maskTexts(), { 100: '0-3', 101: '0-3', 102: '0-3' });
    kernel.sets = 0;
    assert.deepEqual([keeper.apply({ only: set('0-3') }).moved, kernel.sets], [0, 0]);
  });

  it('keeps the rest of each thread’s own mask, with avoid; without a rest it moves it elsewhere, if it can', () => {
    kernel.thread(101, '4-7');
    keeper.apply({ avoid: set('0-1,4'), otherwise: set('') });
    assert.deepEqual(kernel.maskTexts(), { 100: '2-3,5-15', 101: '5-7', 102: '2-3,5-15' });
    keeper.apply({ avoid: set('5-7'), otherwise: set('0-6') });
    assert.equal(kernel.maskTexts()[101], '0-4');
    assert.deepEqual(keeper.apply({ avoid: set('0-4'), otherwise: set('2') }).errors, ['EINVAL']);
    assert.equal(kernel.maskTexts()[101], '0-4');
  });

  it('covers threads that start during the pass, and ignores one that ends', () => {
    let born = 200;
    kernel.onSet = () => {
      if (born < 203) kernel.thread(born++, '0-15');
      kernel.masks.delete(102);
    };
    const { threads, errors } = keeper.apply({ only: set('0') });
    assert.deepEqual([threads, errors], [6, []]);
    assert.deepEqual([...new Set(Object.values(kernel.maskTexts()))], ['0']);
  });

  it('lists the threads five times at most, if new ones never end', () => {
    let born = 200;
    kernel.onSet = () => kernel.thread(born++, '0-15');
    assert.equal(keeper.apply({ only: set('0') }).threads, 15);
  });
});

describe('threads that cannot be on the wanted CPUs', () => {
  beforeEach(fresh);

  it('are not clipped by CPUs that the machine does not have', () => {
    assert.equal(keeper.apply({ only: set('0-1,32-63') }).clipped, 0);
    kernel.sets = 0;
    keeper.apply({ only: set('0-1,32-63') });
    assert.equal(kernel.sets, 0, 'the kernel’s shorter mask counts as the goal');
  });

  it('are reported as clipped, and not written again, if a cpuset limits them', () => {
    kernel.cpuset = '0-1';
    assert.equal(keeper.apply({ only: set('0-3') }).clipped, 3);
    kernel.sets = 0;
    for (let i = 0; i < 3; i++) assert.equal(keeper.apply({ only: set('0-3') }).clipped, 3);
    assert.equal(kernel.sets, 0);
    assert.equal(keeper.apply({ only: set('0-1') }).clipped, 0);
  });

  it('cause an error but no loop if a cpuset excludes the goal; another goal is tried', () => {
    kernel.cpuset = '8-15';
    assert.deepEqual(keeper.apply({ only: set('0-3') }).errors, ['EINVAL', 'EINVAL', 'EINVAL']);
    kernel.sets = 0;
    assert.equal(keeper.apply({ only: set('0-3') }).errors.length, 3, 'still reported');
    assert.equal(kernel.sets, 0);
    assert.equal(keeper.apply({ only: set('8') }).moved, 3);
  });
});

describe('threads that are skipped or restored', () => {
  beforeEach(fresh);

  it('get their own masks back, new threads get that of the main thread, and the saved masks are dropped', () => {
    kernel.thread(101, '5');
    keeper.adoptMasks();
    const { main, odd } = keeper.originalMasks ?? { odd: [] };
    assert.deepEqual([String(main), odd.map(({ tid }) => tid)], ['0-15', [101]]);
    keeper.apply({ only: set('0-3') });
    kernel.thread(103, '0-3');
    assert.equal(keeper.restore().moved, 4);
    assert.deepEqual(kernel.maskTexts(), { 100: '0-15', 101: '5', 102: '0-15', 103: '0-15' });
    keeper.restoreRemaining();
    assert.deepEqual([keeper.originalMasks, keeper.restore().moved], [undefined, 0]);
  });

  it('get masks that were known before, except under the id of an ended thread, which gets the main thread’s', () => {
    const odd = (tid: number) => ({ tid, start: 0, cpus: set('3') });
    keeper.adoptMasks({ main: set('2-9'), odd: [odd(101), odd(102)] });
    keeper.apply({ only: set('0') });
    kernel.born.set(101, 7);
    keeper.restore();
    assert.deepEqual(kernel.maskTexts(), { 100: '2-9', 101: '2-9', 102: '3' });
  });

  for (const [seconds, own, displaced] of [
    [59, '0-15', 0],
    [61, '3', 1],
  ] as const) {
    it(`of a main thread that gets more CPUs ${seconds} s after the first pass are ${own}`, () => {
      kernel.thread(100, '3');
      keeper.adoptMasks();
      keeper.apply({ only: set('0') });
      kernel.now = seconds * 1000;
      kernel.thread(100, '0-15');
      assert.equal(keeper.apply({ only: set('0') }).displaced, displaced);
      kernel.thread(100, '0-15');
      assert.equal(keeper.apply({ only: set('0') }).displaced, 1, 'a start has one end');
      keeper.restore();
      assert.equal(kernel.maskTexts()[100], own);
    });
  }

  it('of a main thread that gets more CPUs between its first sight and the first pass are those', () => {
    kernel.thread(100, '3');
    keeper.adoptMasks();
    kernel.thread(100, '0-15');
    assert.equal(keeper.apply({ only: set('0') }).displaced, 0);
    keeper.restore();
    assert.equal(kernel.maskTexts()[100], '0-15');
  });

  it('have no saved masks if the main thread has ended', () => {
    kernel.masks.delete(100);
    keeper.adoptMasks();
    assert.equal(keeper.originalMasks, undefined);
  });

  for (const [daemon, moved, polled] of [
    ['ovs-vswitchd', '9', '9'],
    ['ovsdb-server', '0-3', ''],
  ] as const) {
    it(`with the name of a poll mode driver in ${daemon} get CPUs ${moved}`, () => {
      kernel.thread(104, '9', 'pmd-c09/id:4');
      keeper = kernel.keeper(daemon);
      keeper.adoptMasks();
      keeper.apply({ only: set('0-3') });
      assert.deepEqual([kernel.maskTexts()[104], keeper.pmdCpus().toString()], [moved, polled]);
      keeper.restore();
      assert.equal(kernel.maskTexts()[104], '9');
    });
  }
});

describe('the quick check of threads', () => {
  beforeEach(() => {
    fresh();
    keeper.apply({ only: set('0-3') });
  });

  for (const [name, change] of [
    ['the main thread was moved', () => kernel.thread(100, '0-1')],
    ['another thread was moved', () => kernel.thread(102, '0-1')],
    ['a thread has started', () => kernel.thread(103, '0-3')],
    ['a thread ended', () => kernel.masks.delete(102)],
    ['the process is another one', () => kernel.identity++],
  ] as const) {
    it(`notices within four checks: ${name}`, () => {
      assert.equal(keeper.isAsLeft(), true);
      change();
      assert.ok(Array.from({ length: 4 }, () => keeper.isAsLeft()).includes(false));
    });
  }

  it('counts threads that another process moved, but not those that the keeper or a cpuset moved or that stayed', () => {
    assert.equal(keeper.apply({ only: set('0-7') }).displaced, 0);
    kernel.thread(101, '8');
    kernel.thread(102, '0-3');
    assert.equal(keeper.apply({ only: set('0-3') }).displaced, 2, 'also where it was put where it should be');
    kernel.thread(103, '9');
    assert.equal(keeper.apply({ only: set('0-3') }).displaced, 0, 'a new thread');
    kernel.cpuset = '0-1';
    for (const tid of kernel.masks.keys()) kernel.masks.set(tid, set('0-1'));
    assert.equal(keeper.apply({ only: set('0-3') }).displaced, 0, 'a cpuset');
  });
});

describe('descriptions of the threads of a process', () => {
  beforeEach(() => {
    fresh();
    kernel.thread(101, '4');
  });

  it('have name, allowed CPUs and the reason for other CPUs than wanted', () => {
    kernel.thread(104, '9', 'pmd-c09/id:4');
    kernel.cpuset = '0-2';
    keeper.apply({ only: set('2-3') });
    const clipped = { name: 'handler', allowed: '2', desired: '2-3', note: 'clipped' };
    const polling = { tid: 104, name: 'pmd-c09/id:4', allowed: '9', desired: null, note: 'pmd' };
    assert.deepEqual(keeper.describe('2-3'), [...[100, 101, 102].map((tid) => ({ tid, ...clipped })), polling]);
    kernel.cpuset = '8';
    assert.deepEqual(keeper.apply({ only: set('3') }).errors, ['EINVAL', 'EINVAL', 'EINVAL']);
    assert.equal(keeper.describe('3')[0]?.note, 'EINVAL');
    kernel.cpuset = '0-15';
    keeper.apply({ only: set('4') });
    assert.equal(keeper.describe('4')[0]?.note, null);
  });

  it('list the threads on given CPUs, except poll mode drivers', () => {
    kernel.thread(104, '9', 'pmd-c09/id:4');
    assert.deepEqual(keeper.threadsOn(set('9')), [100, 102]);
    assert.deepEqual(keeper.threadsOn(set('4')), [100, 101, 102]);
    keeper.apply({ only: set('1') });
    assert.deepEqual(keeper.threadsOn(set('4')), []);
  });
});

describe('the poll mode threads of a switch', () => {
  it('are those that OVS names so', () => {
    fresh();
    for (const [i, name] of ['pmd-c03/id:9', 'pmd-control', 'my-pmd-c1', 'pmd-c11/id:1'].entries())
      kernel.thread(i + 1, `${i + 1}`, name);
    keeper.list();
    assert.equal(keeper.pmdCpus().toString(), '1,4');
  });
});
