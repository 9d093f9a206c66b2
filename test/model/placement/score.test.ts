import assert from 'node:assert/strict';
import type { HostReport } from '../../../model/kubelet/report.ts';
import { needs, node, physnet, place } from './fixture.ts';

type Case = readonly [
  what: string,
  pod: Parameters<typeof needs>,
  host: Partial<HostReport>,
  cpus: string,
  score: number,
];

const NO_NETWORKS = { physnets: [], tunnel: undefined };
const FULL_EAST = [{ podUID: 'x', container: 'c', cpus: '8-15' }];
const nothing: readonly never[] = [];

/**
 * Housekeeping is 3/6 for keeping off the NUMA nodes of NICs, 2/6 for how full the node is afterwards, 1/6 for whole
 * cores. Without a preferred network the score is 0.4 plus 0.6 of it; with some it is 0.2 of it plus 0.8 of how near
 * they are.
 */
const CASES: readonly Case[] = [
  // 3/6 + 2/6 * 4/16 + 1/6 = 0.75
  ['a node without networks', ['a', 4], NO_NETWORKS, '2-5', 0.4 + 0.6 * 0.75],
  // 3/6 + 2/6 * 12/16 + 1/6
  ['a fuller node', ['a', 4], { ...NO_NETWORKS, assignments: FULL_EAST }, '2-5', 0.4 + 0.6 * (11 / 12)],
  // 3/6 + 2/6 * 3/16 + 1/6 * 7/8
  [
    'one split core of eight',
    ['a', 3],
    { ...NO_NETWORKS, cpuManager: { policy: 'static' } },
    '2-4',
    0.4 + 0.6 * (1 / 2 + 1 / 16 + 7 / 48),
  ],
  // 2/6 * 4/16 + 1/6 = 0.25
  ['NICs on each NUMA node that the pod does not need', ['a', 4], {}, '2-5', 0.4 + 0.6 * 0.25],
  // 3/6 * 8/10 + 2/6 * 10/16 + 1/6
  [
    'a fifth of the CPUs near a NIC of others',
    ['a', 10],
    { physnets: [{ name: 'east', cells: '0' }], tunnel: undefined },
    '2-3,8-15',
    0.4 + 0.6 * (2 / 5 + 5 / 24 + 1 / 6),
  ],
  ['a preferred network nearby', ['a', 4, [physnet('east', 'preferred')]], {}, '2-5', 0.8 + 0.2 * 0.75],
  ['a preferred network far away', ['a', 4, [physnet('west', 'preferred')]], {}, '2-5', 0.8 * 0.5 + 0.2 * 0.25],
  ['a pod without CPUs of its own', ['a', 0.5, nothing], NO_NETWORKS, '', 0.4 + 0.6 * (1 / 2 + 1 / 6)],
];

describe('the score', () => {
  for (const [what, pod, host, cpus, score] of CASES) {
    it(`${what}: ${score.toFixed(4)}`, () => {
      const placement = place(needs(...pod), node(host));
      assert.ok(placement.outcome === 'admitted', JSON.stringify(placement));
      assert.equal(placement.containers.map((one) => `${one.cpus}`).join(' '), cpus);
      assert.ok(Math.abs(placement.score - score) < 1e-9, `${placement.score}, not ${score}`);
    });
  }

  it('is higher near a preferred network, then on a node that has it, than anywhere else, however full the nodes are', () => {
    const busy = (cpus: string) => [{ podUID: 'x', container: 'c', cpus }];
    const loads = [[], busy('8-9'), busy('10-15'), busy('4-7,10-15')];
    const pod = needs('a', 2, [physnet('west', 'preferred')]);
    const scores = (cells: string | undefined) =>
      loads.map((assignments) => {
        const others = [{ name: 'south', cells: '0' }];
        const physnets = cells === undefined ? [] : [{ name: 'west', cells }, ...others];
        const placement = place(pod, node({ physnets, tunnel: undefined, assignments }));
        return placement.outcome === 'admitted' ? placement.score : Number.NaN;
      });
    // The kubelet gets no device request and assigns CPUs of NUMA node 0.
    const [near, onNode, absent] = [scores('0'), scores('1'), scores(undefined)];
    assert.ok(Math.min(...near) > Math.max(...onNode), `${near} > ${onNode}`);
    assert.ok(Math.min(...onNode) > Math.max(...absent), `${onNode} > ${absent}`);
  });
});
