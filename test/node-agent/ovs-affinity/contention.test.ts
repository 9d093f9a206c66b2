import assert from 'node:assert/strict';
import { createContention } from '../../../node-agent/ovs-affinity/contention.ts';

type Contention = ReturnType<typeof createContention>;

describe('another process that sets the CPUs of threads', () => {
  let seconds: number;
  let contention: Contention;
  /** At this second, a pass finds this number of moved threads. */
  const pass = (at: number, displaced: number) => {
    seconds = at;
    contention.note(displaced);
    return contention.isContended;
  };
  const isContendedAt = (at: number) => {
    seconds = at;
    return contention.isContended;
  };

  beforeEach(() => {
    seconds = 0;
    contention = createContention(() => seconds * 1000);
  });

  it('is not suspected if no thread was moved', () => assert.equal(pass(10, 0), false));

  it('is suspected for a minute after one move, which may be an operator’s', () => {
    assert.equal(pass(10, 5), false);
    assert.equal(contention.isSuspected, true);
    seconds = 69.999;
    assert.equal(contention.isSuspected, true);
    seconds = 70;
    assert.equal(contention.isSuspected, false);
    assert.equal(pass(70, 5), false);
    assert.equal(pass(129.999, 5), true);
    assert.equal(contention.isSuspected, false, 'it is known');
  });

  it('is a program if it moves threads twice within a minute, until a quiet minute', () => {
    pass(10, 5);
    assert.equal(pass(11, 5), true);
    assert.equal(isContendedAt(70), true);
    assert.equal(isContendedAt(71), false);
  });

  it('restarts the quiet time with each move', () => {
    for (const at of [10, 11, 60, 110]) pass(at, 1);
    assert.equal(isContendedAt(169), true);
    assert.equal(isContendedAt(170), false);
  });

  it('doubles the quiet time after each early move, up to an hour; two hours without a move reset it to a minute', () => {
    let at = 1000;
    for (const quiet of [60, 120, 240, 480, 960, 1920, 3600, 3600]) {
      assert.equal(pass(at, 1), false);
      assert.equal(pass(at + 1, 1), true);
      assert.equal(isContendedAt(at + quiet), true, `${quiet} s`);
      assert.equal(isContendedAt(at + 1 + quiet), false, `${quiet} s`);
      at += 1 + quiet;
      assert.equal(pass(at, 0), false);
      at += 100;
    }
    at += 7200;
    pass(at, 0);
    pass(at, 1);
    pass(at + 1, 1);
    assert.equal(isContendedAt(at + 62), false);
  });
});
