import assert from 'node:assert/strict';
import { candidateKey, createCandidateOrder, LAST_KEY } from '../../../scheduler-plugin/filter/candidate-order.ts';

describe('the key of a candidate', () => {
  const plain = { lacks: false, assumed: false, wastes: false, left: 0 };
  const CASES: readonly [string, Partial<typeof plain>, number][] = [
    ['a node that the pod fills', {}, 0],
    ['CPUs that are left', { left: 7 }, 7],
    ['255 CPUs that are left', { left: 255 }, 255],
    ['more CPUs than are distinguished', { left: 256 }, 255],
    ['networks that the pod does not need', { wastes: true }, 256],
    ['pods in flight', { assumed: true }, 512],
    ['a preferred network that the node lacks', { lacks: true }, 1024],
    ['all of these', { lacks: true, assumed: true, wastes: true, left: 1000 }, 2047],
  ];
  for (const [what, more, key] of CASES) {
    it(`${what}: ${key}`, () => assert.equal(candidateKey({ ...plain, ...more }), key));
  }

  it('is always lower than the key of a node without a prediction', () => assert.equal(LAST_KEY, 2048));
});

describe('the order of candidates', () => {
  const filled = (keys: readonly number[]) => {
    const order = createCandidateOrder();
    order.begin(keys.length);
    keys.forEach((key, position) => {
      order.add(position, key);
    });
    return order;
  };

  it('is by key; equal keys keep their order, and nodes without a prediction are last', () => {
    const order = filled([LAST_KEY, 5, 0, 5, LAST_KEY, LAST_KEY - 1, 0]);
    assert.deepEqual([...order.ranked()], [2, 6, 1, 3, 5]);
    assert.deepEqual([...order.unranked()], [0, 4]);
    assert.deepEqual([...order.positions()], [2, 6, 1, 3, 5, 0, 4]);
    assert.equal(order.count, 7);
  });

  it('is empty when it begins again', () => {
    const order = filled([1, 2, LAST_KEY]);
    order.begin(1);
    assert.deepEqual([order.count, ...order.positions()], [0]);
    order.add(0, 2);
    assert.deepEqual([order.count, ...order.positions()], [1, 0]);
  });

  it('grows for many names', () => {
    for (const names of [1024, 1025, 5000]) {
      const order = filled(Array.from({ length: names }, (_, i) => i % 2));
      const evens = Array.from({ length: Math.ceil(names / 2) }, (_, i) => 2 * i);
      const odds = Array.from({ length: Math.floor(names / 2) }, (_, i) => 2 * i + 1);
      assert.deepEqual([...order.positions()], [...evens, ...odds]);
    }
  });
});
