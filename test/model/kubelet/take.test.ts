import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { HangError, takeDistributed } from '../../../model/kubelet/take.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { simpleHost } from './fixture.ts';

describe('CPUs distributed over NUMA nodes', () => {
  /** NUMA nodes of whole cores, of each of which some threads of some cores are reserved. */
  function partlyReserved(cells: number, cpusOfCell: number, threads: number, reserved: readonly number[]) {
    const host = simpleHost(cells, cpusOfCell, threads);
    const cpus = Array.from({ length: cells }, (_, cell) => reserved.map((cpu) => cell * cpusOfCell + cpu)).flat();
    return { topology: topologyOfHost(host), free: host.online.minus(CpuSet.of(cpus)) };
  }

  const hangs: readonly [what: string, ...shape: [number, number, number], reserved: number[], hangs: number[]][] = [
    ['half of a core', 4, 8, 2, [0], [22]],
    ['a whole core', 4, 8, 2, [0, 1], []],
    ['a thread of SMT4', 4, 16, 4, [0], [44]],
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
});
