import assert from 'node:assert/strict';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { Kubelet } from '../../../model/kubelet/kubelet.ts';
import { MemoryManager } from '../../../model/kubelet/memory-manager.ts';
import type { CellMemory } from '../../../model/kubelet/memory-state.ts';
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

  it('memory of a NUMA node without CPUs counts: a large request is spread onto it', () => {
    const bare = [...CELLS, { id: 4, memory: 16 * GI }];
    assert.equal(maskOf(admitTo(kubeletOf('none', bare), request('a', '20Gi')), 'a'), 0b101);
    assert.equal(admitTo(kubeletOf('none'), request('a', '20Gi')).admitted, false);
  });
});
