import assert from 'node:assert/strict';
import { Contention } from '../../../node-agent/lifecycle/contention.ts';

describe('another process that sets the CPUs of threads', () => {
  let seconds: number;
  let contention: Contention;
  /** At this second, a pass finds this number of moved threads. */
  const pass = (at: number, displaced: number) => {
    seconds = at;
    contention.note(displaced);
    return contention.mode;
  };

  beforeEach(() => {
    seconds = 0;
    contention = new Contention(() => seconds);
  });

  it('is suspected for a minute after one move, which may be an operator’s', () => {
    const moves = [0, 10, 69.999, 70].map((at) => pass(at, at === 10 ? 5 : 0));
    assert.deepEqual(moves, ['clear', 'suspected', 'suspected', 'clear']);
    assert.deepEqual([pass(70, 5), pass(129.999, 5)], ['suspected', 'contended']);
  });

  it('is a program if it moves threads twice within a minute, until ten minutes without a move', () => {
    for (const at of [10, 11, 60, 300]) pass(at, 1);
    assert.deepEqual([pass(899, 0), pass(900, 0)], ['contended', 'clear']);
    assert.deepEqual([pass(901, 1), pass(902, 1)], ['suspected', 'contended'], 'an operator again');
  });
});
