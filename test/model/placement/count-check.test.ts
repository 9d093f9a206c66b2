import assert from 'node:assert/strict';
import { countCheck } from '../../../model/placement/count-check.ts';
import { needs, node, physnet, TUNNEL } from './fixture.ts';

/** Of a kubelet that is not predicted: 14 CPUs are free, 6 of them on NUMA node 0. */
const host = (changes: Parameters<typeof node>[0] = {}) => node({ kubeletVersion: 'v1.20.0', ...changes });
const plain = { cpuManager: { policy: 'static' } };
const CPU_0_IS_TAKEN = [{ podUID: 'x', container: 'c', cpus: '2' }];
const tooFew = (wanted: number, available: number) => ({
  detail: `${wanted} CPUs are needed and at most ${available} are free`,
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
    ['one core too few', countCheck(needs('a', 16), host()), tooFew(16, 14)],
    ['all of them', countCheck(needs('a', 14), host()), undefined],
    ['a broken core counts nothing', countCheck(needs('a', 14), host({ assignments: CPU_0_IS_TAKEN })), tooFew(14, 12)],
    [
      'but where whole cores are promised to none',
      countCheck(needs('a', 14), host({ ...plain, assignments: CPU_0_IS_TAKEN })),
      tooFew(14, 13),
    ],
    ['CPUs that the switch polls are not free', countCheck(needs('a', 12), host({ pmdCPUs: '2-5' })), tooFew(12, 10)],
    ['pods in flight are counted off', countCheck(needs('a', 8), host(), [needs('b', 4), needs('c', 4)]), tooFew(8, 6)],
    ['just enough next to them', countCheck(needs('a', 6), host(), [needs('b', 4), needs('c', 4)]), undefined],
    ['not the pod itself', countCheck(needs('a', 8), host(), [needs('a', 8)]), undefined],
    ['never fewer than none', countCheck(needs('a', 2), host(), [needs('b', 16)]), tooFew(2, 0)],
    ['near its network: too few', countCheck(needs('a', 8, [physnet('east')]), host()), elsewhere(EAST, 0, 8, 6)],
    ['near its network: just enough', countCheck(needs('a', 6, [physnet('east')]), host()), undefined],
    [
      'near its network: whole cores',
      countCheck(needs('a', 6, [physnet('east')]), host({ assignments: CPU_0_IS_TAKEN })),
      elsewhere(EAST, 0, 6, 4),
    ],
    [
      'near the second of its networks',
      countCheck(needs('a', 8, [TUNNEL, physnet('east')]), host()),
      elsewhere(EAST, 0, 8, 6),
    ],
    ['an init container’s CPUs come back', countCheck(needs('a', 6, [physnet('east')], {}, 8), host()), undefined],
    ['a guest that may span', countCheck(needs('a', 8, [physnet('east')], { spansCells: true }), host()), undefined],
    ['a network that is preferred', countCheck(needs('a', 8, [physnet('east', 'preferred')]), host()), undefined],
    ['a network that is not here', countCheck(needs('a', 8, [physnet('ghost')]), host()), undefined],
    ['a network of no known NUMA node', countCheck(needs('a', 8, [physnet('vague')]), host()), undefined],
    [
      'no CPUs of its own',
      countCheck(needs('a', 0.5), host({ assignments: [{ podUID: 'x', container: 'c', cpus: '2-15' }] })),
      undefined,
    ],
  ];
  for (const [what, refusal, expected] of cases) {
    it(what, () => {
      if (refusal === undefined || expected === undefined) return assert.equal(refusal, expected);
      const { detail, resource, where, wanted, available } = refusal;
      assert.deepEqual({ detail, resource, where, wanted, available }, expected);
    });
  }
});
