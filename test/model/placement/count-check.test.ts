import assert from 'node:assert/strict';
import { countCheck } from '../../../model/placement/coarse.ts';
import { needs, node, physnet, TUNNEL } from './fixture.ts';

/** A host with an unpredictable kubelet: 14 CPUs are free, 6 of them on NUMA node 0. */
const host = (changes: Parameters<typeof node>[0] = {}) => node({ kubeletVersion: 'v1.20.0', ...changes });
const plain = { cpuManager: { policy: 'static' } };
const CPU_0_IS_TAKEN = [{ podUID: 'x', container: 'c', cpus: '2' }];
const tooFew = (wanted: number, available: number) => ({
  detail: `${wanted} CPUs needed; at most ${available} CPUs free`,
  resource: 'cpus',
  where: undefined,
  wanted,
  available,
});
const elsewhere = (network: string, cell: number, wanted: number, available: number) => ({
  detail: `${network} is on NUMA node ${cell}, where at most ${available} of ${wanted} needed CPUs are free`,
  resource: 'cpus',
  where: [cell],
  wanted,
  available,
});
const EAST = 'interface if-east (physnet east)';

describe('model/placement: the count of free CPUs', () => {
  const cases: readonly [what: string, refusal: ReturnType<typeof countCheck>, expected: object | undefined][] = [
    ['refuses one core more than is free', countCheck(needs('a', 16), host()), tooFew(16, 14)],
    ['accepts all free CPUs', countCheck(needs('a', 14), host()), undefined],
    [
      'does not count a partly used core',
      countCheck(needs('a', 14), host({ assignments: CPU_0_IS_TAKEN })),
      tooFew(14, 12),
    ],
    [
      'counts a partly used core if whole cores are not required',
      countCheck(needs('a', 14), host({ ...plain, assignments: CPU_0_IS_TAKEN })),
      tooFew(14, 13),
    ],
    [
      'does not count CPUs on which the switch polls',
      countCheck(needs('a', 12), host({ pmdCPUs: '2-5' })),
      tooFew(12, 10),
    ],
    ['subtracts pods in flight', countCheck(needs('a', 8), host(), [needs('b', 4), needs('c', 4)]), tooFew(8, 6)],
    [
      'accepts all CPUs next to pods in flight',
      countCheck(needs('a', 6), host(), [needs('b', 4), needs('c', 4)]),
      undefined,
    ],
    ['does not subtract the pod itself', countCheck(needs('a', 8), host(), [needs('a', 8)]), undefined],
    ['is never negative', countCheck(needs('a', 2), host(), [needs('b', 16)]), tooFew(2, 0)],
    [
      'refuses too few CPUs near a network',
      countCheck(needs('a', 8, [physnet('east')]), host()),
      elsewhere(EAST, 0, 8, 6),
    ],
    ['accepts just enough CPUs near a network', countCheck(needs('a', 6, [physnet('east')]), host()), undefined],
    [
      'counts whole cores near a network',
      countCheck(needs('a', 6, [physnet('east')]), host({ assignments: CPU_0_IS_TAKEN })),
      elsewhere(EAST, 0, 6, 4),
    ],
    [
      'refuses too few CPUs near the second network',
      countCheck(needs('a', 8, [TUNNEL, physnet('east')]), host()),
      elsewhere(EAST, 0, 8, 6),
    ],
    ['counts an init container’s CPUs again', countCheck(needs('a', 6, [physnet('east')], {}, 8), host()), undefined],
    [
      'accepts a guest that may span NUMA nodes',
      countCheck(needs('a', 8, [physnet('east')], { spansCells: true }), host()),
      undefined,
    ],
    ['ignores a preferred network', countCheck(needs('a', 8, [physnet('east', 'preferred')]), host()), undefined],
    ['ignores a network that the node does not have', countCheck(needs('a', 8, [physnet('ghost')]), host()), undefined],
    ['ignores a network without a known NUMA node', countCheck(needs('a', 8, [physnet('vague')]), host()), undefined],
    [
      'accepts a pod without CPUs of its own',
      countCheck(needs('a', 0.5), host({ assignments: [{ podUID: 'x', container: 'c', cpus: '2-15' }] })),
      undefined,
    ],
  ];
  for (const [what, refusal, expected] of cases) {
    it(what, () => {
      if (refusal === undefined || expected === undefined) return assert.equal(refusal, expected);
      const { detail, resource, where, needed: wanted, available } = refusal;
      assert.deepEqual({ detail, resource, where, wanted, available }, expected);
    });
  }
});
