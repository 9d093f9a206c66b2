import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { readCpuOptions } from '../../../model/kubelet/options.ts';
import { takeByTopology } from '../../../model/kubelet/static-policy.ts';
import { HangError, takeDistributed } from '../../../model/kubelet/take.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { simpleHost } from './fixture.ts';

/** Two NUMA nodes of eight CPUs, cores of two threads. */
function taken(
  count: number,
  options: readonly string[],
  free = '0-15',
  host = simpleHost(2, 8),
  version?: string,
): string {
  const cpuOptions = readCpuOptions(Object.fromEntries(options.map((name) => [name, 'true'])));
  const behaviour = version === undefined ? {} : { behaviour: behaviourOf(version)! };
  return `${takeByTopology(topologyOfHost(host), cpuOptions, CpuSet.parse(free), count, behaviour)}`;
}

/** Cores 0,4 to 3,7. */
const FAR = createHost({ cells: [{ id: 0, cpus: '0-7' }], cores: ['0,4', '1,5', '2,6', '3,7'] });

const NEAR = simpleHost(1, 8);
/** Two sockets of two NUMA nodes of four CPUs. */
const SOCKETS = createHost({
  cells: [0, 1, 2, 3].map((id) => ({ id, cpus: `${4 * id}-${4 * id + 3}` })),
  cores: Array.from({ length: 8 }, (_, core) => `${2 * core}-${2 * core + 1}`),
  sockets: [0, 1].map((id) => ({ id, cpus: `${8 * id}-${8 * id + 7}` })),
});
const V38 = 'v1.38.0-alpha.1';
const CORES = 'distribute-cpus-across-cores';
const ALIGNED = [CORES, 'align-by-socket'];
/** The NUMA nodes of the first socket have three free CPUs each; of the second socket, one is free and one is full. */
const BUSY = '0-2,4-6,8-11';
const SPREAD = 'distribute-cpus-across-numa';

describe('CPUs by the options of the static policy', () => {
  const cases: readonly [what: string, taken: string, expected: string][] = [
    ['are spread in whole cores, if those are required', taken(10, [SPREAD, 'full-pcpus-only']), '0-5,8-11'],
    ['are whole cores first, whatever their ids', taken(3, [], '0-7', FAR), '0-1,4'],
    ['are spread over cores', taken(3, ['distribute-cpus-across-cores'], '0-7', FAR), '0-2'],
    ['are spread over cores by id before 1.38', taken(4, [CORES], '0-7', NEAR, 'v1.37.0'), '0-3'],
    ['are spread over cores from 1.38 on', taken(4, [CORES], '0-7', NEAR, V38), '0,2,4,6'],
    ['are second threads after one of each core', taken(5, [CORES], '0-7', NEAR, V38), '0-2,4,6'],
    ['are of the core with fewer free threads first', taken(1, [CORES], '0-5,7', NEAR, V38), '7'],
    ['are spread over cores of distant siblings from 1.38 on', taken(3, [CORES], '0-7', FAR, V38), '0-2'],
    ['may leave a socket that has room before 1.38', taken(6, ALIGNED, BUSY, SOCKETS, 'v1.37.0'), '0-1,8-11'],
    ['stay on a socket that has room from 1.38 on', taken(6, ALIGNED, BUSY, SOCKETS, V38), '0-2,4-6'],
    ['are of both sockets if none has room', taken(8, ALIGNED, BUSY, SOCKETS, V38), '0,2,4,6,8-11'],
  ];
  for (const [what, cpus, expected] of cases) it(what, () => assert.equal(cpus, expected));
});

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
