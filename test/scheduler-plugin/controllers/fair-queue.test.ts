import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FairQueue, WorkQueue } from '../../../scheduler-plugin/controllers/fair-queue.ts';
import { silent } from '../../support/logger.ts';

/** A queue of the texts, each in the namespace that it begins with. */
const queueOf = (...texts: readonly string[]) => {
  const queue = new FairQueue<string>();
  for (const text of texts) queue.set(text[0] ?? '', text, text);
  return queue;
};
const takeAll = (queue: FairQueue<string>) => {
  const order: string[] = [];
  for (let next = queue.take(); next !== undefined; next = queue.take()) order.push(next);
  return order.join(' ');
};

describe('a fair queue', () => {
  const ORDERS: readonly [label: string, added: string, taken: string][] = [
    ['nothing', '', ''],
    ['one namespace, in the order of addition', 'a2 a1 a3', 'a2 a1 a3'],
    ['one of each namespace in turn', 'a1 a2 a3 b1 c1 c2', 'a1 b1 c1 a2 c2 a3'],
    ['a value that is added twice, once', 'a1 b1 a1', 'a1 b1'],
  ];
  for (const [label, added, taken] of ORDERS)
    it(`gives ${label}`, () => {
      const queue = queueOf(...added.split(' ').filter((text) => text !== ''));
      assert.equal([...queue.values()].join(' '), taken);
      assert.equal(takeAll(queue), taken);
      assert.equal(queue.size, 0);
    });

  it('gives a namespace whose values are added later its turn before the second value of another', () => {
    const queue = queueOf('a1', 'a2', 'a3');
    assert.equal(queue.take(), 'a1');
    queue.set('b', 'b1', 'b1');
    assert.equal(takeAll(queue), 'a2 b1 a3');
  });

  it('keeps values that are not ready, with the turn of their namespace', () => {
    const queue = queueOf('a1', 'a2', 'b1');
    const [ready, none] = [queue.take((text) => text !== 'a1'), queue.take(() => false)];
    assert.deepEqual([ready, none, queue.size, takeAll(queue)], ['a2', undefined, 2, 'b1 a1']);
  });

  it('has no value after its deletion, and ignores the deletion of one that it does not have', () => {
    const queue = queueOf('a1', 'b1', 'b2');
    assert.equal(queue.oldestOfLargest(), 'b1');
    queue.delete('b', 'b1');
    queue.delete('b', 'b1');
    queue.delete('c', 'a1');
    assert.deepEqual([queue.size, queue.oldestOfLargest(), takeAll(queue)], [2, 'a1', 'a1 b2']);
    queue.set('a', 'a1', 'a1');
    queue.clear();
    assert.deepEqual([queue.size, queue.oldestOfLargest(), queue.take()], [0, undefined, undefined]);
  });
});

describe('work by key', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const setUp = (atATime: number) => {
    const begun: string[] = [];
    const open = new Map<string, () => void>();
    const work = new WorkQueue(
      (key) => {
        begun.push(key);
        return new Promise<void>((resolve, reject) => {
          open.set(key, key === 'fails' ? () => reject(new Error('a mistake')) : resolve);
        });
      },
      atATime,
      silent,
    );
    const end = async (key: string) => {
      open.get(key)?.();
      await setImmediate();
    };
    return { work, begun, end };
  };

  it('continues after work that fails, also for its key', async () => {
    const { work, begun, end } = setUp(1);
    for (const key of ['fails', 'b', 'fails']) work.add(key);
    await end('fails');
    await end('b');
    work.add('fails');
    assert.deepEqual(begun, ['fails', 'b', 'fails']);
  });

  it('runs for a limited number of keys at a time, and once more for a key that was added meanwhile', async () => {
    const { work, begun, end } = setUp(2);
    for (const key of ['a', 'b', 'c', 'a', 'a']) work.add(key);
    assert.deepEqual(begun, ['a', 'b']);
    await end('b');
    assert.deepEqual(begun, ['a', 'b', 'c']);
    await end('a');
    assert.deepEqual(begun, ['a', 'b', 'c', 'a']);
    await end('a');
    await end('c');
    assert.deepEqual(begun.length, 4, 'nothing is left');
  });

  it('starts once for a delayed key, after the delay that was requested last', () => {
    const { work, begun } = setUp(2);
    work.addAfter('a', 100);
    work.addAfter('a', 300);
    mock.timers.tick(299);
    assert.deepEqual(begun, []);
    mock.timers.tick(1);
    assert.deepEqual(begun, ['a']);
    mock.timers.tick(1000);
    assert.deepEqual(begun, ['a']);
  });
});
