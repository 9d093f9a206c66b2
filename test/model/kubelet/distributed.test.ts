import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { takeDistributed } from '../../../model/kubelet/distributed.ts';
import { TakeError } from '../../../model/kubelet/packed.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { simpleHost } from './fixture.ts';

/** Of NUMA nodes of eight CPUs: 0-7, 8-15, 16-23. */
function taken(cells: number, free: string, count: number, groupSize = 1): string {
  return `${takeDistributed(topologyOfHost(simpleHost(cells, 8)), CpuSet.parse(free), count, groupSize, 'packed')}`;
}

describe('model/kubelet: CPUs distributed over NUMA nodes', () => {
  const cases: readonly [what: string, taken: string, expected: string][] = [
    ['the first node that holds them all', taken(2, '0-15', 4), '0-3'],
    ['the last one, where it alone has room', taken(2, '0-1,8-15', 4), '8-11'],
    ['every CPU of the last one', taken(2, '0,8-15', 8), '8-15'],
    ['the one that leaves the nodes most alike', taken(3, '0-3,8-13,16-23', 4), '16-19'],
    ['an even share of as few as can hold them', taken(3, '0-23', 12), '0-5,8-13'],
    ['the last pair, where it alone has room', taken(3, '0-3,8-23', 12), '8-13,16-21'],
    ['every node, to its last CPU', taken(3, '0-23', 24), '0-23'],
    ['the odd one from the first', taken(2, '0-15', 9), '0-4,8-11'],
    ['the odd one from where there is room', taken(2, '0-3,8-15', 9), '0-3,8-12'],
    ['the two that are over, turn by turn', taken(3, '0-23', 17), '0-5,8-13,16-20'],
    ['groups of two', taken(2, '0-15', 10, 2), '0-5,8-11'],
    ['a number that is no multiple of the groups: packed', taken(2, '0-15', 3, 2), '0-2'],
    ['no even share: packed', taken(2, '7-15', 9), '7-15'],
    ['none at all', taken(2, '0-15', 0), ''],
  ];
  for (const [what, cpus, expected] of cases) it(what, () => assert.equal(cpus, expected));

  it('more than are free', () => assert.throws(() => taken(2, '0-3', 5), TakeError));
});
