import assert from 'node:assert/strict';
import { EVERY_CPU, SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { moveThreads, pinThreads, type ThreadPin } from '../../native/pin-threads.ts';

const ESRCH = 3;
const EPERM = 1;
const FIRST = Uint32Array.of(1);
const SECOND = Uint32Array.of(2);
const BOTH = Uint32Array.of(3);

/** Threads 1 and 2 may use both CPUs, 9 cannot be moved, and 404 has ended. The cpuset of 2 allows `allowed`. */
function threadsWith(allowed = BOTH) {
  const masks = new Map<number, Uint32Array>([1, 2, 9].map((tid) => [tid, BOTH]));
  const affinity: ThreadAffinity = {
    get(tid) {
      const mask = masks.get(tid);
      if (mask === undefined) throw new SyscallError('sched_getaffinity', tid, ESRCH);
      return tid === 2 ? mask.map((word, i) => word & (allowed[i] ?? 0)) : mask;
    },
    set(tid, words) {
      if (tid === 9 || !masks.has(tid)) throw new SyscallError('sched_setaffinity', tid, tid === 9 ? EPERM : ESRCH);
      masks.set(tid, words);
    },
  };
  const where = () => [1, 2].map((tid) => masks.get(tid)?.[0]);
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
    assert.deepEqual(moveThreads(affinity, [1, 2, 9, 404], SECOND), { there: [1], left: [2, 9] });
    assert.deepEqual(where(), [2, 2]);
  });
});
