import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { NO_CPU_OPTIONS } from '../../../model/kubelet/options.ts';
import { takeByTopology } from '../../../model/kubelet/static-policy.ts';
import { HangError, TakeError, takeDistributed } from '../../../model/kubelet/take.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { simpleHost } from './fixture.ts';

/** The given number of NUMA nodes of eight CPUs: 0-7, 8-15, 16-23. */
function taken(cells: number, free: string, count: number, groupSize = 1, cpusOfCell = 8): string {
  return `${takeDistributed(topologyOfHost(simpleHost(cells, cpusOfCell)), CpuSet.parse(free), count, groupSize, 'packed')}`;
}

describe('model/kubelet: CPUs distributed over NUMA nodes', () => {
  const cases: readonly [what: string, taken: string, expected: string][] = [
    ['are on the first node that holds them all', taken(2, '0-15', 4), '0-3'],
    ['are on the last node if only that one has room', taken(2, '0-1,8-15', 4), '8-11'],
    ['may use every CPU of the last node', taken(2, '0,8-15', 8), '8-15'],
    ['leave the nodes most evenly used', taken(3, '0-3,8-13,16-23', 4), '16-19'],
    ['are evenly shared by as few nodes as possible', taken(3, '0-23', 12), '0-5,8-13'],
    ['are on the last pair if only that one has room', taken(3, '0-3,8-23', 12), '8-13,16-21'],
    ['may use every CPU of every node', taken(3, '0-23', 24), '0-23'],
    ['have the odd one on the first node', taken(2, '0-15', 9), '0-4,8-11'],
    ['have the odd one where there is room', taken(2, '0-3,8-15', 9), '0-3,8-12'],
    ['have two remaining ones in turn', taken(3, '0-23', 17), '0-5,8-13,16-20'],
    ['may be in groups of two', taken(2, '0-15', 10, 2), '0-5,8-11'],
    ['are packed if their number is not a multiple of the group', taken(2, '0-15', 3, 2), '0-2'],
    ['are packed if there is no even share', taken(2, '7-15', 9), '7-15'],
    ['leave large nodes most evenly used, even by one CPU', taken(4, '0-59,64-124,128-187,192-251', 1, 1, 64), '124'],
    ['may be zero', taken(2, '0-15', 0), ''],
  ];
  for (const [what, cpus, expected] of cases) it(what, () => assert.equal(cpus, expected));

  it('are whole cores if the policy gives only those', () => {
    const topology = topologyOfHost(simpleHost(2, 8));
    const take = (fullPcpusOnly: boolean) => {
      const options = { ...NO_CPU_OPTIONS, distributeAcrossNuma: true, fullPcpusOnly };
      return `${takeByTopology(topology, options, CpuSet.parse('0-15'), 10)}`;
    };
    assert.deepEqual([take(true), take(false)], ['0-5,8-11', '0-4,8-12']);
  });

  it('are on as few nodes as nodes of the average size would need', () => {
    const of = (first: number, count: number) => {
      const cells = [
        { id: 0, cpus: `0-${first - 1}` },
        { id: 1, cpus: `${first}-16` },
      ];
      const host = createHost({ cells, cores: Array.from({ length: 17 }, (_, id) => `${id}`) });
      return `${takeDistributed(topologyOfHost(host), host.online, count, 1, 'packed')}`;
    };
    assert.deepEqual([of(9, 9), of(9, 10), of(9, 17)], ['0-8', '0-4,9-13', '0-16']);
    // The first node could hold all ten.
    assert.deepEqual([of(12, 9), of(12, 10)], ['0-8', '0-4,12-16']);
  });

  /** NUMA nodes of whole cores, of each of which some threads of some cores are reserved. */
  function partlyReserved(cells: number, cpusOfCell: number, threads: number, reserved: readonly number[]) {
    const host = simpleHost(cells, cpusOfCell, threads);
    const cpus = Array.from({ length: cells }, (_, cell) => reserved.map((cpu) => cell * cpusOfCell + cpu)).flat();
    return { topology: topologyOfHost(host), free: host.online.minus(CpuSet.of(cpus)) };
  }

  const hangs: readonly [
    what: string,
    cells: number,
    cpus: number,
    threads: number,
    reserved: number[],
    hangs: number[],
  ][] = [
    ['half of a core', 4, 8, 2, [0], [22]],
    ['a whole core', 4, 8, 2, [0, 1], []],
    ['half of a core, two NUMA nodes', 2, 8, 2, [0], []],
    ['half of a core, three NUMA nodes', 3, 8, 2, [0], []],
    ['a thread of SMT4', 4, 16, 4, [0], [44]],
    ['two threads of SMT4', 4, 16, 4, [0, 1], [44]],
    ['three threads of two cores, SMT4', 4, 16, 4, [0, 1, 2, 4, 5, 6], [28]],
    ['all threads of a core, SMT4', 4, 16, 4, [0, 1, 2, 3], []],
    ['a thread of SMT8', 4, 32, 8, [0], [88]],
    ['half of a core, SMT8', 4, 32, 8, [0, 1, 2, 3], [88]],
    ['five threads of two cores, SMT8', 4, 32, 8, [0, 1, 2, 3, 4, 8, 9, 10, 11, 12], [56]],
  ];
  for (const [what, cells, cpusOfCell, threads, reserved, expected] of hangs) {
    it(`with ${what} reserved: ${expected.length > 0 ? `${expected} CPUs hang a kubelet before 1.38` : 'no number hangs'}`, () => {
      const { topology, free } = partlyReserved(cells, cpusOfCell, threads, reserved);
      const counts = Array.from({ length: Math.floor(free.size / threads) }, (_, i) => (i + 1) * threads);
      const hanging = counts.filter((count) => {
        const take = (remainder: 'cpus' | 'groups') =>
          takeDistributed(topology, free, count, threads, 'packed', { remainder, minCells: 0 });
        assert.equal(take('groups').size, count, `${count} CPUs from 1.38 on`);
        try {
          return take('cpus').size !== count;
        } catch (error) {
          if (error instanceof HangError) return true;
          throw error;
        }
      });
      assert.deepEqual(hanging, expected);
    });
  }

  const hinted: readonly [what: string, minCells: number, expected: string][] = [
    ['without a hint: as few as possible', 0, '0-5'],
    ['a hint of two NUMA nodes', 2, '0-2,8-10'],
    ['a hint of all NUMA nodes', 3, '0-1,8-9,16-17'],
    ['a hint of more NUMA nodes than are free: as few as possible', 4, '0-5'],
  ];
  for (const [what, minCells, expected] of hinted) {
    it(`use the NUMA nodes of the hint from 1.38 on: ${what}`, () => {
      const topology = topologyOfHost(simpleHost(3, 8));
      const cpus = takeDistributed(topology, topology.cpus, 6, 1, 'packed', { remainder: 'groups', minCells });
      assert.equal(`${cpus}`, expected);
    });
  }

  it('are refused if too few are free', () => assert.throws(() => taken(2, '0-3', 5), TakeError));
});
