import assert from 'node:assert/strict';
import { createSchedulingQueue } from '../../../sandbox/scheduler/scheduling-queue.ts';

describe('scheduler: the queue', () => {
  let time = 0;
  const make = () => {
    time = 0;
    return createSchedulingQueue(() => time, 1, 10);
  };
  it('does not lose a signal that arrives during a try', () => {
    const queue = make();
    queue.add('a');
    const uid = queue.pop()!;
    queue.wake();
    queue.unschedulable(uid);
    assert.equal(queue.pop(), 'a');
  });
  it('backs off after errors: 1, 2, 4, 8, 10 s, even with signals', () => {
    const queue = make();
    queue.add('a');
    for (const seconds of [1, 2, 4, 8, 10, 10]) {
      queue.failed(queue.pop()!);
      queue.wake();
      time += seconds - 0.001;
      assert.equal(queue.pop(), undefined, `${seconds} s`);
      time += 0.001;
      queue.add('b');
      queue.remove('b');
    }
    assert.equal(queue.pop(), 'a');
  });
});
