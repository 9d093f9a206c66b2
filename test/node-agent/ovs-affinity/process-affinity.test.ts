import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { step } from '../../../node-agent/ovs-affinity/allowed-cpus.ts';
import type { ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { FakeKernel } from './kernel-stand-in.ts';

const set = (text: string) => CpuSet.parse(text);

let kernel: FakeKernel;
let keeper: ProcessAffinity;
/** Three threads on sixteen CPUs. */
function fresh(): void {
  kernel = new FakeKernel();
  for (const tid of [100, 101, 102]) kernel.thread(tid, '0-15');
  keeper = kernel.keeper();
}

describe('keeping threads in their place', () => {
  beforeEach(fresh);

  it('every thread goes to the goal; a second pass changes nothing', () => {
    assert.deepEqual(keeper.apply({ only: set('0-3') }), {
      threads: 3,
      moved: 3,
      displaced: 0,
      clipped: 0,
      errors: [],
    });
    assert.deepEqual(kernel.shown(), { 100: '0-3', 101: '0-3', 102: '0-3' });
    kernel.sets = 0;
    assert.equal(keeper.apply({ only: set('0-3') }).moved, 0);
    assert.equal(kernel.sets, 0);
  });

  it('only the thread that differs is set, the main thread or not', () => {
    keeper.apply({ only: set('0-3') });
    kernel.sets = 0;
    kernel.thread(102, '7');
    assert.equal(keeper.apply({ only: set('0-3') }).moved, 1);
    assert.equal(kernel.sets, 1);
  });

  it('avoid: each thread keeps the rest of its own mask', () => {
    kernel.thread(101, '4-7');
    keeper.apply({ avoid: set('0-1,4'), otherwise: set('') });
    assert.deepEqual(kernel.shown(), { 100: '2-3,5-15', 101: '5-7', 102: '2-3,5-15' });
    assert.deepEqual(keeper.threadsOn(set('4')), []);
  });

  it('avoid: moves a thread that is only on those CPUs; leaves it if there are no others', () => {
    kernel.thread(101, '4-5');
    keeper.apply({ avoid: set('4-5'), otherwise: set('0-6') });
    assert.equal(kernel.shown()[101], '0-3,6');
    assert.deepEqual(keeper.apply({ avoid: set('0-3,6'), otherwise: set('2') }).errors, ['EINVAL']);
    assert.equal(kernel.shown()[101], '0-3,6');
  });

  it('threads born during the pass converge', () => {
    let born = 200;
    kernel.onSet = () => {
      if (born < 203) kernel.thread(born++, '0-15');
    };
    const { threads } = keeper.apply({ only: set('0') });
    assert.equal(threads, 6);
    assert.deepEqual([...new Set(Object.values(kernel.shown()))], ['0']);
  });

  it('a single thread that is moved, and starts another in the middle of it, and that one another: all converge', () => {
    keeper.apply({ only: set('0') });
    kernel.thread(101, '0-15');
    let born = 200;
    kernel.onSet = () => {
      if (born < 202) kernel.thread(born++, '0-15');
    };
    assert.deepEqual(keeper.apply({ only: set('0') }), { threads: 5, moved: 3, displaced: 1, clipped: 0, errors: [] });
    assert.deepEqual([kernel.shown()[200], kernel.shown()[201]], ['0', '0']);
  });

  it('ignores a thread that ends during the pass', () => {
    kernel.onSet = () => kernel.masks.delete(102);
    assert.deepEqual(keeper.apply({ only: set('0') }).errors, []);
  });
});

describe('threads that cannot be where they should', () => {
  beforeEach(fresh);

  it('CPUs that the machine lacks are not missed', () => {
    assert.equal(keeper.apply({ only: set('0-1,32-63') }).clipped, 0);
    kernel.sets = 0;
    keeper.apply({ only: set('0-1,32-63') });
    assert.equal(kernel.sets, 0, 'the kernel’s shorter mask counts as the goal');
  });

  it('a cpuset that clips: steady, reported as clipped, not written again', () => {
    kernel.cpuset = '0-1';
    assert.equal(keeper.apply({ only: set('0-3') }).clipped, 3);
    kernel.sets = 0;
    for (let i = 0; i < 3; i++) assert.equal(keeper.apply({ only: set('0-3') }).clipped, 3);
    assert.equal(kernel.sets, 0);
    assert.equal(keeper.apply({ only: set('0-1') }).clipped, 0);
  });

  it('a cpuset apart from the goal: an error, no loop; another goal is tried', () => {
    kernel.cpuset = '8-15';
    assert.deepEqual(keeper.apply({ only: set('0-3') }).errors, ['EINVAL', 'EINVAL', 'EINVAL']);
    kernel.sets = 0;
    assert.equal(keeper.apply({ only: set('0-3') }).errors.length, 3, 'still reported');
    assert.equal(kernel.sets, 0);
    assert.equal(keeper.apply({ only: set('8') }).moved, 3);
  });
});

describe('threads that are left alone or given back', () => {
  beforeEach(fresh);

  it('restores each thread’s own mask; one born meanwhile gets the main thread’s', () => {
    kernel.thread(101, '5');
    keeper.remember();
    keeper.apply({ only: set('0-3') });
    kernel.thread(103, '0-3');
    keeper.apply({ only: set('0-1') });
    keeper.restore();
    assert.deepEqual(kernel.shown(), { 100: '0-15', 101: '5', 102: '0-15', 103: '0-15' });
  });

  it('a thread that has the id of one that ended is another: it gets the main thread’s mask', () => {
    kernel.thread(101, '5');
    keeper.remember();
    keeper.apply({ only: set('0-3') });
    kernel.born.set(101, 7);
    keeper.restore();
    assert.equal(kernel.shown()[101], '0-15');
  });

  it('masks that are known from before are the ones given back', () => {
    keeper.remember({ main: set('2-9'), odd: [{ tid: 102, start: 0, cpus: set('3') }] });
    keeper.apply({ only: set('0') });
    keeper.restore();
    assert.deepEqual(kernel.shown(), { 100: '2-9', 101: '2-9', 102: '3' });
  });

  it('restores nothing it did not change', () => {
    assert.equal(keeper.restore().moved, 0);
    assert.equal(kernel.sets, 0);
  });

  it('leaves poll mode drivers of ovs-vswitchd alone and reports their CPUs', () => {
    kernel.thread(104, '9', 'pmd-c09/id:4');
    keeper.remember();
    keeper.apply({ only: set('0-3') });
    assert.equal(kernel.shown()[104], '9');
    assert.equal(keeper.pmdCpus().toString(), '9');
    keeper.restore();
    assert.equal(kernel.shown()[104], '9');
  });

  it('a thread that gets its name a moment later is still known as a poll mode driver', () => {
    kernel.thread(104, '9', 'ovs-vswitchd');
    keeper.snapshot();
    assert.equal(keeper.pmdCpus().toString(), '');
    kernel.names.set(104, 'pmd-c09/id:4');
    keeper.snapshot();
    assert.equal(keeper.pmdCpus().toString(), '9');
  });

  for (const [daemon, name] of [
    ['ovsdb-server', 'pmdx'],
    ['ovsdb-server', 'pmd-c01/id:1'],
    ['ovs-vswitchd', 'pmdx'],
  ] as const) {
    it(`a thread ${name} of ${daemon} is an ordinary one`, () => {
      kernel.thread(104, '9', name);
      kernel.keeper(daemon).apply({ only: set('0-3') });
      assert.equal(kernel.shown()[104], '0-3');
    });
  }

  it('1,024 CPUs', () => {
    kernel.online = '0-1023';
    kernel.cpuset = '0-1023';
    keeper.apply({ only: set('0-1,1000-1023') });
    assert.equal(kernel.shown()[101], '0-1,1000-1023');
  });
});

describe('a glance at the threads', () => {
  beforeEach(() => {
    fresh();
    keeper.apply({ only: set('0-3') });
  });

  const changes: [string, () => void][] = [
    ['the main thread was moved', () => kernel.thread(100, '0-1')],
    ['another thread was moved', () => kernel.thread(102, '0-1')],
    ['a thread was born', () => kernel.thread(103, '0-3')],
    ['a thread ended', () => void kernel.masks.delete(102)],
    ['the process is another', () => void kernel.identity++],
  ];
  for (const [name, change] of changes) {
    it(`${name}: seen within two looks`, () => {
      assert.equal(keeper.isAsLeft(), true);
      change();
      assert.ok([keeper.isAsLeft(), keeper.isAsLeft()].includes(false));
    });
  }

  it('of 512 threads a look asks for half, the next one for the others: one that was moved is seen within two', () => {
    for (let tid = 200; kernel.masks.size < 512; tid++) kernel.thread(tid, '0-3');
    keeper.apply({ only: set('0-3') });
    for (const tid of kernel.masks.keys()) {
      kernel.gets = 0;
      assert.ok(keeper.isAsLeft());
      assert.ok(kernel.gets <= 257, `${kernel.gets} calls`);
      kernel.thread(tid, '7');
      const looks = [keeper.isAsLeft(), keeper.isAsLeft()];
      assert.ok(looks.includes(false), `thread ${tid}`);
      assert.equal(keeper.apply({ only: set('0-3') }).displaced, 1);
    }
  });

  it('threads that another process moved are counted; those that the keeper or a cpuset moved, or that stayed, are not', () => {
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

  it('held by its cpuset: nothing new', () => {
    kernel.cpuset = '0-1';
    keeper.apply({ only: set('0-5') });
    assert.equal(keeper.isAsLeft(), true);
  });
});

describe('from the CPUs applied to those that are free', () => {
  const cases: [string, string | undefined, string, string, string | undefined][] = [
    ['the first set as it is', undefined, '0-3', '0-3', undefined],
    ['nothing changed', '0-3', '0-3', '0-3', undefined],
    ['shrinking at once', '0-3', '0-1', '0-1', undefined],
    ['growing later', '0-1', '0-3', '0-1', '0-3'],
    ['both: leaving at once, taking later', '0-3', '2-5', '2-3', '2-5'],
    ['nothing of the last is left: as it is', '0-1', '2-3', '2-3', undefined],
  ];
  for (const [name, applied, free, now, later] of cases) {
    it(name, () => {
      const next = step(applied === undefined ? undefined : set(applied), set(free));
      assert.deepEqual([next.now.toString(), next.later?.toString()], [now, later]);
    });
  }
});
