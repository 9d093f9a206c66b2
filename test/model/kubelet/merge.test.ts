import assert from 'node:assert/strict';
import fc from 'fast-check';
import { mergeHints } from '../../../model/kubelet/merge.ts';
import { bitCount, type Hint, subMasks } from '../../../model/kubelet/provider.ts';
import { policies } from './arbitraries.ts';
import { mergePlain } from './set-based.ts';

describe('model/kubelet: merging hints', () => {
  const hint = (cells: number): fc.Arbitrary<Hint> =>
    fc.record({ mask: fc.option(fc.integer({ min: 1, max: 2 ** cells - 1 }), { freq: 4 }), preferred: fc.boolean() });

  it('with distinct results only gives the same as all combinations', () => {
    const cases = fc
      .integer({ min: 1, max: 4 })
      .chain((cells) =>
        fc.tuple(
          fc.constant(cells),
          policies,
          fc.array(fc.array(hint(cells), { minLength: 1, maxLength: 5 }), { maxLength: 4 }),
        ),
      );
    fc.assert(
      fc.property(cases, ([cells, policy, lists]) => {
        const all = 2 ** cells - 1;
        const providers = lists.map((list, index) => new Map([[`r${index}`, list]]));
        const merged = mergeHints(policy, { all }, providers);
        const cpus = Array.from({ length: cells }, (_, cell) => ({
          id: cell,
          core: cell,
          socket: cell,
          cell,
          uncore: cell,
        }));
        const plain = mergePlain(
          {
            cpus: new Map(cpus.map((cpu) => [cpu.id, cpu])),
            reserved: new Set(),
            fullPcpusOnly: false,
            preferUncore: false,
            wideDeviceHints: false,
            policy,
          },
          lists.map((list) => list.map(({ mask, preferred }) => ({ nodes: nodesOf(mask), preferred }))),
        );
        assert.equal(merged.admit, plain.admit);
        assert.equal(merged.hint.preferred, plain.preferred);
        assert.deepEqual(nodesOf(merged.hint.mask), plain.nodes);
      }),
      { numRuns: 2000 },
    );
  });

  it('of as many nodes takes those that are closest to each other, then the lowest', () => {
    const distances = [
      [10, 20, 12, 12],
      [20, 10, 12, 30],
      [12, 12, 10, 30],
      [12, 30, 30, 10],
    ];
    const merged = (preferred: boolean, ...masks: readonly number[]) =>
      mergeHints('best-effort', { all: 0b1111, distances }, [
        new Map([['cpu', masks.map((mask) => ({ mask, preferred }))]]),
      ]).hint.mask;
    for (const preferred of [true, false]) {
      assert.equal(merged(preferred, 0b11, 0b101), 0b101);
      assert.equal(merged(preferred, 0b101, 0b11), 0b101);
      assert.equal(merged(preferred, 0b1001, 0b101, 0b110), 0b101, 'equally close');
      assert.equal(merged(preferred, 0b1100, 0b1010), 0b1010, 'equally far');
      assert.equal(merged(preferred, 0b111, 0b1101), 0b111);
      assert.equal(merged(preferred, 0b111, 0b11), 0b11, 'narrower');
      assert.equal(merged(preferred, 0b1000, 0b101), 0b1000, 'narrower');
    }
  });

  it('of eight nodes and three resources with 255 hints each is fast', () => {
    const list = subMasks(255).map((mask) => ({ mask, preferred: bitCount(mask) === 3 }));
    const { hint: merged } = mergeHints('restricted', { all: 255 }, [
      new Map([['a', list]]),
      new Map([['b', list]]),
      new Map([['c', list]]),
    ]);
    assert.deepEqual(merged, { mask: 0b111, preferred: true });
  });
});

function nodesOf(mask: number | null): Set<number> | null {
  return mask === null ? null : new Set([0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (mask & (1 << bit)) !== 0));
}
