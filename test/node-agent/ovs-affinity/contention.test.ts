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

  it('is a program if it moves threads twice within a minute, until ten minutes without a move', () => {
    for (const at of [10, 11, 60, 300]) pass(at, 1);
    assert.equal(isContendedAt(899), true);
    assert.equal(isContendedAt(900), false);
    assert.equal(pass(900, 0), false);
    assert.equal(pass(901, 1), false, 'an operator again');
    assert.equal(pass(902, 1), true);
  });
});
