import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { FakeKernel } from './kernel-stand-in.ts';

const set = (text: string) => CpuSet.parse(text);
const NOTHING = { threads: 0, moved: 0, displaced: 0, clipped: 0, errors: [] };

/** A process whose main thread (100) and one other thread (102) may use all CPUs, and one (101) only CPU 4. */
function stage() {
  const kernel = new FakeKernel();
  for (const tid of [100, 101, 102]) kernel.thread(tid, tid === 101 ? '4' : '0-15');
  return { kernel, keeper: kernel.keeper() };
}

describe('restored threads of a process', () => {
  it('are none if no masks were saved', () => {
    const { kernel, keeper } = stage();
    assert.deepEqual([keeper.restore(), kernel.sets], [NOTHING, 0]);
    assert.equal(keeper.originalMasks, undefined);
  });

  it('get their own masks back, new threads get that of the main thread, and the saved masks are dropped', () => {
    const { kernel, keeper } = stage();
    keeper.remember();
    assert.equal(keeper.originalMasks?.main.toString(), '0-15');
    assert.deepEqual(
      keeper.originalMasks?.odd.map(({ tid }) => tid),
      [101],
    );
    keeper.apply({ only: set('1') });
    kernel.thread(103, '1');
    assert.equal(keeper.restore().moved, 4);
    assert.deepEqual(kernel.maskTexts(), { 100: '0-15', 101: '4', 102: '0-15', 103: '0-15' });
    assert.equal(keeper.originalMasks, undefined);
    assert.deepEqual(keeper.restore(), NOTHING);
  });

  it('get the main thread’s mask if another thread has taken their id', () => {
    const { kernel, keeper } = stage();
    keeper.remember();
    keeper.apply({ only: set('1') });
    kernel.born.set(101, 77);
    keeper.restore();
    assert.equal(kernel.maskTexts()[101], '0-15');
  });

  it('get masks that were known before rather than their current ones', () => {
    const { kernel, keeper } = stage();
    keeper.remember({ main: set('9'), odd: [] });
    keeper.apply({ only: set('1') });
    keeper.restore();
    assert.deepEqual(kernel.maskTexts(), { 100: '9', 101: '9', 102: '9' });
  });

  it('have no saved masks if the main thread has ended', () => {
    const { kernel, keeper } = stage();
    kernel.masks.delete(100);
    keeper.remember();
    assert.equal(keeper.originalMasks, undefined);
  });
});

describe('descriptions of the threads of a process', () => {
  it('have name, allowed CPUs and the reason for other CPUs than wanted', () => {
    const { kernel, keeper } = stage();
    kernel.thread(104, '9', 'pmd-c09/id:4');
    kernel.cpuset = '0-2';
    keeper.apply({ only: set('2-3') });
    assert.deepEqual(
      keeper.describe().map(({ tid, name, allowed, note }) => [tid, name, allowed.toString(), note]),
      [
        [100, 'handler', '2', 'clipped'],
        [101, 'handler', '2', 'clipped'],
        [102, 'handler', '2', 'clipped'],
        [104, 'pmd-c09/id:4', '9', 'pmd'],
      ],
    );
    kernel.cpuset = '8';
    assert.deepEqual(keeper.apply({ only: set('3') }).errors, ['EINVAL', 'EINVAL', 'EINVAL']);
    assert.equal(keeper.describe()[0]?.note, 'EINVAL');
    kernel.cpuset = '0-15';
    keeper.apply({ only: set('4') });
    assert.equal(keeper.describe()[0]?.note, undefined);
  });

  it('list the threads on given CPUs, except poll mode drivers', () => {
    const { kernel, keeper } = stage();
    kernel.thread(104, '9', 'pmd-c09/id:4');
    assert.deepEqual(keeper.threadsOn(set('9')), [100, 102]);
    assert.deepEqual(keeper.threadsOn(set('4')), [100, 101, 102]);
    keeper.apply({ only: set('1') });
    assert.deepEqual(keeper.threadsOn(set('4')), []);
  });
});

describe('the check of a process', () => {
  it('passes until a thread starts, ends or is moved, or the process is another one', () => {
    const { kernel, keeper } = stage();
    keeper.apply({ only: set('1') });
    for (let i = 0; i < 4; i++) assert.equal(keeper.isAsLeft(), true);
    kernel.masks.set(100, set('2'));
    assert.equal(keeper.isAsLeft(), false, 'the main thread is part of each look');
    keeper.apply({ only: set('1') });
    for (const tid of [101, 102]) {
      kernel.masks.set(tid, set('2'));
      const looks = Array.from({ length: 4 }, () => keeper.isAsLeft());
      assert.equal(looks.includes(false), true, `thread ${tid} within four looks`);
      keeper.apply({ only: set('1') });
    }
    kernel.thread(103, '1');
    assert.equal(keeper.isAsLeft(), false);
    keeper.apply({ only: set('1') });
    assert.equal(keeper.isAsLeft(), true);
    kernel.masks.delete(103);
    assert.equal(keeper.isAsLeft(), false);
    keeper.apply({ only: set('1') });
    assert.equal(keeper.isAsLeft(), true);
    kernel.identity = 2;
    assert.equal(keeper.isAsLeft(), false);
  });
});
