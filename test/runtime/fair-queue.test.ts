import assert from 'node:assert/strict';
import { FairQueue } from '../../runtime/fair-queue.ts';

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
