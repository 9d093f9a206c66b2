import assert from 'node:assert/strict';
import { CpuSet } from '../../model/cpu-set.ts';
import { EVERY_CPU } from '../../native/affinity.ts';
import { moveThreads, pinThreads, type ThreadPin } from '../../native/pin-threads.ts';
import { FakeAffinity } from './affinity-stand-in.ts';

const FIRST = Uint32Array.of(1);
const FIRST_AND_THIRD = Uint32Array.of(5);
const BOTH = Uint32Array.of(3);

/** Threads 1 and 2 may use both CPUs, 9 cannot be moved, and 404 has ended. The cpuset of 2 allows `allowed`. */
function threadsWith(allowed = BOTH) {
  const affinity = new FakeAffinity();
  for (const tid of [1, 2, 9]) affinity.masks.set(tid, CpuSet.fromWords(BOTH));
  affinity.cpusetOf = (tid) => (tid === 2 ? CpuSet.fromWords(allowed) : undefined);
  affinity.forbidden.add(9);
  const where = () => [1, 2].map((tid) => affinity.masks.get(tid)?.toWords(1)[0]);
  return { affinity, where };
}

describe('threads that are pinned together', () => {
  it('get their CPUs, and their previous ones when that is undone', () => {
    const { affinity, where } = threadsWith();
    const pins = [
      { tid: 1, words: FIRST },
      { tid: 2, words: Uint32Array.of(2, 0), before: FIRST },
    ];
    const undo = pinThreads(affinity, pins);
    assert.deepEqual(where(), [1, 2]);
    undo();
    assert.deepEqual(where(), [3, 1]);
  });

  const FAULTS: readonly [label: string, last: ThreadPin, error: object][] = [
    ['the kernel refuses one', { tid: 9, words: FIRST }, { code: 'EPERM', tid: 9 }],
    ['one has ended', { tid: 404, words: FIRST }, { code: 'ESRCH' }],
    [
      'the cpuset of one allows fewer CPUs',
      { tid: 2, words: BOTH },
      { name: 'PinError', message: /^thread 2 /, got: FIRST },
    ],
  ];
  for (const [label, last, error] of FAULTS) {
    it(`keep their CPUs if ${label}`, () => {
      const { affinity, where } = threadsWith(FIRST);
      assert.throws(() => pinThreads(affinity, [{ tid: 1, words: FIRST }, last]), error);
      assert.deepEqual(where()[0], 3);
    });
  }

  it('may have fewer CPUs where the mask restricts nothing', () => {
    const { affinity } = threadsWith(FIRST);
    assert.doesNotThrow(() => pinThreads(affinity, [{ tid: 2, words: EVERY_CPU }]));
  });
});

describe('threads that are moved one by one', () => {
  it('are those that the kernel moves; ended ones are in neither list', () => {
    const { affinity, where } = threadsWith(FIRST);
    assert.deepEqual(moveThreads(affinity, [1, 2, 9, 404], FIRST_AND_THIRD), { there: [1], left: [2, 9] });
    assert.deepEqual(where(), [5, 5]);
  });
});
