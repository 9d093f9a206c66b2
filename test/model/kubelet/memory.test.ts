import assert from 'node:assert/strict';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { Kubelet } from '../../../model/kubelet/kubelet.ts';
import { MemoryManager } from '../../../model/kubelet/memory-manager.ts';
import {
  type CellMemory,
  initialMemory,
  type MemoryBlock,
  type MemoryState,
  memoryHints,
  releaseMemory,
  satisfies,
  splitsGroup,
  takeMemory,
} from '../../../model/kubelet/memory-state.ts';
import { type PodRequest, podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const GI = 2 ** 30;
const CELLS: readonly CellMemory[] = [
  { id: 0, memory: 9 * GI, hugePages: { 'hugepages-1Gi': 2 * GI }, reserved: { memory: GI } },
  { id: 1, memory: 9 * GI, hugePages: { 'hugepages-1Gi': 4 * GI }, reserved: { memory: GI } },
];

describe('the static memory manager', () => {
  const kubeletOf = (policy: string, cells = CELLS, scope = 'container') =>
    predictable(simpleHost(2, 8), {
      topologyManager: { policy, scope },
      memoryManager: { policy: 'Static', cells },
    });
  const request = (uid: string, memory: string, pages?: string) =>
    podRequestOf(pod(uid, [container('c', 2, { memory, ...(pages && { 'hugepages-1Gi': pages }) })]));
  const admitTo = (kubelet: Kubelet, wanted: PodRequest, state = kubelet.initialState()) =>
    kubelet.admit(state, wanted);
  const maskOf = (admission: Admission, uid: string) => admission.state.memory?.blocks.get(uid)?.get('c')?.[0]?.mask;

  it('huge pages move the CPUs to the node that has them', () => {
    const admission = admitTo(kubeletOf('single-numa-node'), request('a', '1Gi', '3Gi'));
    assert.ok(admission.admitted);
    assert.deepEqual([admission.hint, `${admission.containers[0]?.cpus}`], [[1], '8-9']);
  });

  for (const [what, version, count, expected] of [
    ['of two containers before 1.38: no preference', 'v1.37.0', 2, []],
    ['of two containers from 1.38 on: where it is', 'v1.38.0-alpha.1', 2, [0b10]],
    ['of one container: where it is', 'v1.37.0', 1, [0b10]],
  ] as const) {
    it(`the memory of a pod after a restart, ${what}`, () => {
      const limits = { memory: '1Gi', 'hugepages-1Gi': '2Gi' };
      const podRequest = podRequestOf(
        pod(
          'p',
          ['a', 'b'].slice(0, count).map((name) => container(name, 2, limits)),
        ),
      );
      const cells = CELLS.map((cell) => ({ ...cell, hugePages: { 'hugepages-1Gi': cell.id * 4 * GI } }));
      const { state } = admitTo(kubeletOf('single-numa-node', cells, 'pod'), podRequest);
      assert.ok(state.memory);
      const hints = new MemoryManager(state.memory, podRequest, behaviourOf(version)!).podHints();
      const masks = [...(hints?.values() ?? [])].flatMap((list) => (list ?? []).map(({ mask }) => mask));
      assert.deepEqual([...new Set(masks)], expected);
    });
  }

  it('memory that needs both nodes is refused by single-numa-node and grouped by best-effort', () => {
    assert.equal(admitTo(kubeletOf('single-numa-node'), request('a', '8Gi')).admitted, false);
    const wide = kubeletOf('best-effort');
    const { state } = admitTo(wide, request('a', '8Gi'));
    // Both nodes now form one group, in which memory of a single node is refused.
    assert.equal(maskOf(admitTo(wide, request('b', '1Gi'), state), 'b'), 0b11);
    assert.deepEqual(wide.remove(state, 'a').memory, wide.initialState().memory, 'a removed pod frees all of it');
  });

  it('a node with a single-node block cannot join a group', () => {
    const wide = kubeletOf('best-effort');
    const { state } = admitTo(wide, request('a', '1Gi'));
    const second = admitTo(wide, request('b', '8Gi'), state);
    assert.ok(!second.admitted);
    assert.match(second.message, /\[memorymanager\] failed to find NUMA nodes to extend the current topology hint/);
  });

  it('memory of an init container is passed on and freed once', () => {
    const kubelet = kubeletOf('restricted');
    const limits = { memory: '4Gi' };
    const both = podRequestOf(pod('a', [container('app', 2, limits)], [container('init', 2, limits)]));
    const { state } = admitTo(kubelet, both);
    assert.equal(state.memory?.cells[0]?.tables.get('memory')?.free, 2 * GI);
    assert.deepEqual(kubelet.remove(state, 'a').memory, kubelet.initialState().memory);
  });

  it('memory of a NUMA node without CPUs counts: a large request is spread onto it', () => {
    const bare = [...CELLS, { id: 4, memory: 16 * GI }];
    assert.equal(maskOf(admitTo(kubeletOf('none', bare), request('a', '20Gi')), 'a'), 0b101);
    assert.equal(admitTo(kubeletOf('none'), request('a', '20Gi')).admitted, false);
  });
});

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
const linesOf = (cells: MemoryState['cells']) =>
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

describe('memory of NUMA nodes', () => {
  it('is what is neither in huge pages nor reserved', () => {
    assert.deepEqual(linesOf(start().cells), [
      `0 in 1: ${PAGES}=4/4 memory=8/8`,
      `0 in 10: ${PAGES}=1/1 memory=4/4`,
      '0 in 100: memory=0/0',
    ]);
  });

  const cases: [what: string, blocks: MemoryBlock[], free: (number | undefined)[], groups: string[]][] = [
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
      if (only && others.length === 0) assert.deepEqual(linesOf(releaseMemory(after, only)), linesOf(before.cells));
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
    for (const [mask, request, expected] of [
      [0b1, { memory: 8 }, true],
      [0b1, { memory: 9 }, false],
      [0b11, { memory: 12, [PAGES]: 5 }, true],
      [0b11, { memory: 12, [PAGES]: 6 }, false],
      [0b100, { [PAGES]: 1 }, false],
      [0b100, {}, true],
    ] as const)
      assert.equal(satisfies(start(), mask, new Map(Object.entries(request))), expected, JSON.stringify(request));
  });
});
