import assert from 'node:assert/strict';
import { WorkQueue, type WorkResult } from '../../runtime/work-queue.ts';
import { turns, useVirtualClock } from '../support/virtual-clock.ts';

describe('work by key', () => {
  const { pass } = useVirtualClock();

  /** A queue of keys that are their own values. The work for a key ends when the test says so. */
  const setUp = (options: { maxConcurrent?: number; pauseMilliseconds?: number } = {}) => {
    const begun: string[] = [];
    const faults: unknown[] = [];
    const open = new Map<string, (result: WorkResult | Error) => void>();
    const queue = new WorkQueue<string>({
      work: (key, failures) => {
        begun.push(failures === 0 ? key : `${key} after ${failures}`);
        return new Promise((resolve, reject) => {
          open.set(key, (result) => (result instanceof Error ? reject(result) : resolve(result)));
        });
      },
      onFault: (error) => faults.push(error),
      ...options,
    });
    const add = async (...keys: readonly string[]) => {
      for (const key of keys) queue.add(key, key);
      await turns();
    };
    const end = async (key: string, result: WorkResult | Error = 'done') => {
      open.get(key)?.(result);
      await turns();
    };
    return { queue, begun, faults, add, end };
  };

  it('runs for a limited number of keys at a time, and once more for a key that was added meanwhile', async () => {
    const { begun, add, end } = setUp({ maxConcurrent: 2 });
    await add('a', 'b', 'c', 'a', 'a');
    assert.deepEqual(begun, ['a', 'b']);
    await end('b');
    assert.deepEqual(begun, ['a', 'b', 'c']);
    await add('a');
    await end('a');
    assert.deepEqual(begun, ['a', 'b', 'c', 'a']);
    await end('a');
    await end('c');
    assert.equal(begun.length, 4, 'nothing is left');
  });

  it('pauses after each key, unless there was nothing to do', async () => {
    const { begun, add, end } = setUp({ maxConcurrent: 1, pauseMilliseconds: 100 });
    await add('a', 'b', 'c');
    await end('a', 'nothing');
    await end('b');
    await pass(0.099);
    assert.deepEqual(begun, ['a', 'b']);
    await pass(0.001);
    assert.deepEqual(begun, ['a', 'b', 'c']);
  });

  it('starts once for a delayed key, after the delay that was requested last', async () => {
    const { queue, begun } = setUp();
    queue.addAfter('a', 'a', 100);
    queue.addAfter('a', 'a', 300);
    await pass(0.299);
    assert.deepEqual(begun, []);
    await pass(0.001);
    assert.deepEqual(begun, ['a']);
    await pass(1);
    assert.deepEqual(begun, ['a']);
  });

  it('is tried again after a back-off while it fails, and other keys are not delayed', async () => {
    const { queue, begun, faults, add, end } = setUp({ maxConcurrent: 1 });
    await add('a', 'b');
    const mistake = new Error('a mistake');
    await end('a', mistake);
    assert.deepEqual([begun, faults, queue.isBusy('a')], [['a', 'b'], [mistake], true]);
    await end('b');
    await pass(1);
    await end('a', 'retry');
    await pass(1.999);
    assert.deepEqual(begun, ['a', 'b', 'a after 1']);
    await pass(0.001);
    await end('a');
    await add('a');
    assert.deepEqual(begun.slice(3), ['a after 2', 'a'], 'a success ends the failures');
  });

  it('is forgotten for the key that failed longest ago when there are more than 5,000', async () => {
    const { queue, add, end } = setUp();
    const keys = Array.from({ length: 5001 }, (_, i) => `k${i}`);
    await add(...keys);
    for (const key of keys) void end(key, 'retry');
    await turns();
    assert.deepEqual(
      ['k0', 'k1', 'k5000'].map((key) => queue.isBusy(key)),
      [false, true, true],
    );
  });

  it('does not begin after a stop, which waits for the work that runs', async () => {
    const { queue, begun, add, end } = setUp({ maxConcurrent: 1 });
    await add('a', 'b');
    let isStopped = false;
    void queue.stop().then(() => {
      isStopped = true;
    });
    await turns();
    assert.equal(isStopped, false);
    await end('a', 'retry');
    assert.equal(queue.isBusy('a'), false, 'no timer is left');
    await pass(60);
    assert.deepEqual([begun, isStopped], [['a'], true]);
  });
});
