import assert from 'node:assert/strict';
import { MemoryManager } from '../../../model/kubelet/memory-manager.ts';
import type { CellMemory } from '../../../model/kubelet/memory-state.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const GI = 2 ** 30;
const CELLS: readonly CellMemory[] = [
  { id: 0, memory: 9 * GI, hugePages: { 'hugepages-1Gi': 2 * GI }, reserved: { memory: GI } },
  { id: 1, memory: 9 * GI, hugePages: { 'hugepages-1Gi': 4 * GI }, reserved: { memory: GI } },
];

describe('model/kubelet: the static memory manager', () => {
  const kubelet = (policy: string) =>
    predictable(simpleHost(2, 8), {
      topologyManager: { policy },
      memoryManager: { policy: 'Static', cells: CELLS },
    });
  const request = (uid: string, memory: string, pages?: string) =>
    podRequestOf(pod(uid, [container('c', 2, { memory, ...(pages && { 'hugepages-1Gi': pages }) })]));

  it('huge pages move the CPUs to the node that has them', () => {
    const answer = kubelet('single-numa-node').admit(
      kubelet('single-numa-node').initialState(),
      request('a', '1Gi', '3Gi'),
    );
    assert.ok(answer.admitted);
    assert.deepEqual(answer.hint, [1]);
    assert.equal(`${answer.containers[0]?.cpus}`, '8-9');
  });

  const restored: readonly [what: string, version: string, containers: number, hint: 'node 1' | 'none'][] = [
    ['of two containers before 1.38: no preference', 'v1.37.0', 2, 'none'],
    ['of two containers from 1.38 on: where it is', 'v1.38.0-alpha.1', 2, 'node 1'],
    ['of one container: where it is', 'v1.37.0', 1, 'node 1'],
  ];
  for (const [what, version, count, expected] of restored) {
    it(`the memory of a pod after a restart, ${what}`, () => {
      const limits = { memory: '1Gi', 'hugepages-1Gi': '2Gi' };
      const containers = ['a', 'b'].slice(0, count).map((name) => container(name, 2, limits));
      const onOne = podRequestOf(pod('p', containers));
      const cells = CELLS.map((cell) => ({ ...cell, hugePages: { 'hugepages-1Gi': cell.id * 4 * GI } }));
      const topologyManager = { policy: 'single-numa-node', scope: 'pod' };
      const rules = predictable(simpleHost(2, 8), {
        topologyManager,
        memoryManager: { policy: 'Static', cells },
      });
      const admission = rules.admit(rules.initialState(), onOne);
      assert.ok(admission.admitted && admission.state.memory);
      const hints = new MemoryManager(admission.state.memory, onOne, behaviourOf(version)!).podHints();
      const masks = [...(hints?.values() ?? [])].flatMap((list) => (list ?? []).map(({ mask }) => mask));
      assert.deepEqual([...new Set(masks)], expected === 'node 1' ? [0b10] : []);
    });
  }

  it('memory that needs both nodes is refused by single-numa-node and grouped by restricted', () => {
    assert.equal(
      kubelet('single-numa-node').admit(kubelet('single-numa-node').initialState(), request('a', '8Gi')).admitted,
      false,
    );
    const wide = kubelet('best-effort');
    const answer = wide.admit(wide.initialState(), request('a', '8Gi'));
    assert.ok(answer.admitted);
    // Both nodes now form one group, in which memory of a single node is refused.
    const next = wide.admit(answer.state, request('b', '1Gi'));
    assert.ok(next.admitted);
    assert.deepEqual(next.state.memory?.blocks.get('b')?.get('c')?.[0]?.mask, 0b11);
  });

  it('a node with a single-node block cannot join a group', () => {
    const wide = kubelet('best-effort');
    const first = wide.admit(wide.initialState(), request('a', '1Gi'));
    assert.ok(first.admitted);
    const second = wide.admit(first.state, request('b', '8Gi'));
    assert.ok(!second.admitted);
    assert.equal(second.reason, 'UnexpectedAdmissionError');
    assert.match(second.message, /\[memorymanager\] failed to find NUMA nodes to extend the current topology hint/);
  });

  it('a removed pod frees all its memory', () => {
    const wide = kubelet('best-effort');
    const start = wide.initialState();
    const answer = wide.admit(start, request('a', '8Gi'));
    assert.ok(answer.admitted);
    assert.deepEqual(wide.remove(answer.state, 'a').memory, start.memory);
  });

  it('memory of an init container is passed on and freed once', () => {
    const wide = kubelet('restricted');
    const start = wide.initialState();
    const both = podRequestOf(
      pod('a', [container('app', 2, { memory: '4Gi' })], [container('init', 2, { memory: '4Gi' })]),
    );
    const answer = wide.admit(start, both);
    assert.ok(answer.admitted);
    assert.equal(answer.state.memory?.cells[0]?.tables.get('memory')?.free, 2 * GI);
    assert.deepEqual(wide.remove(answer.state, 'a').memory, start.memory);
  });

  it('memory of a NUMA node without CPUs counts: a large request is spread onto it', () => {
    const bare: readonly CellMemory[] = [...CELLS, { id: 4, memory: 16 * GI }];
    const admitted = (cells: readonly CellMemory[]) => {
      const config = { topologyManager: { policy: 'none' }, memoryManager: { policy: 'Static', cells } };
      const kubelet = predictable(simpleHost(2, 8), config);
      return kubelet.admit(kubelet.initialState(), request('a', '20Gi'));
    };
    const answer = admitted(bare);
    assert.ok(answer.admitted);
    assert.deepEqual(answer.state.memory?.blocks.get('a')?.get('c')?.[0]?.mask, 0b101);
    assert.equal(admitted(CELLS).admitted, false);
  });
});
