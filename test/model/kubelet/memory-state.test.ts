import assert from 'node:assert/strict';
import {
  initialMemory,
  type MemoryBlock,
  type MemoryState,
  memoryHints,
  releaseMemory,
  satisfies,
  splitsGroup,
  takeMemory,
} from '../../../model/kubelet/memory-state.ts';

const PAGES = 'hugepages-2Mi';

/** Three NUMA nodes with 8, 4 and 0 bytes of memory outside of huge pages; the third is not described. */
const start = () =>
  initialMemory(
    [3, 5, 7],
    [
      { id: 5, memory: 6, hugePages: { [PAGES]: 1 }, reserved: { memory: 1 } },
      { id: 3, memory: 16, hugePages: { [PAGES]: 6 }, reserved: { memory: 2, [PAGES]: 2 } },
    ],
  );
const block = (mask: number, size: number, type = 'memory'): MemoryBlock => ({ mask, size, type });
const shown = (cells: MemoryState['cells']) =>
  cells.map(({ blocks, group, tables }) => {
    const free = [...tables].map(([type, table]) => `${type}=${table.free}/${table.allocatable}`).join(' ');
    return `${blocks} in ${group.toString(2)}: ${free}`;
  });
const hintsOf = (
  state: MemoryState,
  request: Record<string, number>,
  reusable: (mask: number, type: string) => number = () => 0,
) =>
  memoryHints(state, new Map(Object.entries(request)), reusable)
    .map(({ mask, preferred }) => `${mask?.toString(2)}${preferred ? '!' : ''}`)
    .join(' ');

describe('model/kubelet: memory of NUMA nodes', () => {
  it('is what is neither in huge pages nor reserved', () => {
    assert.deepEqual(shown(start().cells), [
      `0 in 1: ${PAGES}=4/4 memory=8/8`,
      `0 in 10: ${PAGES}=1/1 memory=4/4`,
      '0 in 100: memory=0/0',
    ]);
  });

  const cases: [what: string, blocks: MemoryBlock[], free: (number | undefined)[], groups: string[]][] = [
    ['a block takes from its node', [block(0b1, 5)], [3, 4, 0], ['1 in 1', '0 in 10', '0 in 100']],
    ['a block takes from its nodes in order', [block(0b11, 10)], [0, 2, 0], ['1 in 11', '1 in 11', '0 in 100']],
    [
      'a block takes nothing from a node that is full',
      [block(0b1, 8), block(0b11, 3)],
      [0, 1, 0],
      ['2 in 11', '1 in 11', '0 in 100'],
    ],
    [
      'a block leaves out nodes without its kind',
      [block(0b110, 1, PAGES)],
      [8, 4, 0],
      ['0 in 1', '1 in 110', '1 in 110'],
    ],
    ['a block of everything takes everything', [block(0b111, 12)], [0, 0, 0], ['1 in 111', '1 in 111', '1 in 111']],
    ['a block of nothing only makes a group', [block(0b101, 0)], [8, 4, 0], ['1 in 101', '0 in 10', '1 in 101']],
  ];
  for (const [what, blocks, free, groups] of cases) {
    it(`${what}, and a single one gives it back`, () => {
      const before = start();
      const after = blocks.reduce((cells, one) => takeMemory(cells, one), before.cells);
      assert.deepEqual(
        after.map(({ tables }) => tables.get('memory')?.free),
        free,
      );
      assert.deepEqual(
        after.map(({ blocks: count, group }) => `${count} in ${group.toString(2)}`),
        groups,
      );
      const [only, ...others] = blocks;
      if (only && others.length === 0) assert.deepEqual(shown(releaseMemory(after, only)), shown(before.cells));
    });
  }

  it('returns to the first nodes of a block first, and not beyond what they have', () => {
    const after = takeMemory(takeMemory(start().cells, block(0b1, 3)), block(0b10, 2));
    const released = releaseMemory(after, block(0b11, 4));
    assert.deepEqual(
      released.map(({ tables }) => tables.get('memory')?.free),
      [8, 3, 0],
    );
    assert.deepEqual(
      released.map(({ blocks }) => blocks),
      [0, 0, 0],
    );
  });

  it('has hints where enough is free, preferred where the whole node would have enough', () => {
    assert.equal(hintsOf(start(), { memory: 4 }), '1! 10! 11 101 110 111');
    assert.equal(hintsOf(start(), { memory: 5 }), '1! 11 101 111');
    assert.equal(hintsOf(start(), { memory: 4, [PAGES]: 2 }), '1! 11 101 111');
    assert.equal(hintsOf(start(), { memory: 12, [PAGES]: 5 }), '11! 111');
    assert.equal(hintsOf(start(), { memory: 13 }), '');
    const used = { ...start(), cells: takeMemory(start().cells, block(0b1, 5)) };
    assert.equal(hintsOf(used, { memory: 4 }), '10! 110');
    assert.equal(
      hintsOf(used, { memory: 4 }, (mask, type) => (mask === 0b1 && type === 'memory' ? 1 : 0)),
      '1! 10! 110',
    );
  });

  it('has no hint that would put a node into two groups', () => {
    const grouped = { ...start(), cells: takeMemory(start().cells, block(0b11, 1)) };
    assert.equal(hintsOf(grouped, { memory: 1 }), '11');
    assert.deepEqual(
      [0b1, 0b11, 0b101, 0b110, 0b111, 0b100].map((mask) => splitsGroup(grouped.cells, mask)),
      [false, false, true, true, true, false],
    );
    assert.equal(splitsGroup(start().cells, 0b111), false);
  });

  it('satisfies a request if the nodes together have every kind', () => {
    const of = (mask: number, request: Record<string, number>) =>
      satisfies(start(), mask, new Map(Object.entries(request)));
    assert.deepEqual(
      [
        of(0b1, { memory: 8 }),
        of(0b1, { memory: 9 }),
        of(0b11, { memory: 12, [PAGES]: 5 }),
        of(0b11, { memory: 12, [PAGES]: 6 }),
      ],
      [true, false, true, false],
    );
    assert.deepEqual([of(0b100, { [PAGES]: 1 }), of(0b100, {})], [false, true]);
  });
});
