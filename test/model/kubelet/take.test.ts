import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { readCpuOptions } from '../../../model/kubelet/options.ts';
import { takeByTopology } from '../../../model/kubelet/static-policy.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { hostOf } from './arbitraries.ts';
import { simpleHost } from './fixture.ts';

/** Two NUMA nodes of eight CPUs, cores of two threads. */
function taken(
  count: number,
  options: readonly string[],
  free = '0-15',
  host = simpleHost(2, 8),
  version = 'v1.36.2',
): string {
  const given = readCpuOptions(Object.fromEntries(options.map((name) => [name, 'true'])));
  const behaviour = behaviourOf(version)!;
  return `${takeByTopology(topologyOfHost(host), given, CpuSet.parse(free), count, { behaviour })}`;
}

/** Cores 0,4 to 3,7. */
const FAR = hostOf({ cells: 1, cores: 4, threads: 2, siblings: 'far', cellsPerSocket: 1 });

const NEAR = simpleHost(1, 8);
/** Two sockets of two NUMA nodes of four CPUs. */
const SOCKETS = hostOf({ cells: 4, cores: 2, threads: 2, siblings: 'near', cellsPerSocket: 2 });
const V38 = 'v1.38.0-alpha.1';
const CORES = 'distribute-cpus-across-cores';
const ALIGNED = [CORES, 'align-by-socket'];
/** The NUMA nodes of the first socket have three free CPUs each; of the second socket, one is free and one is full. */
const BUSY = '0-2,4-6,8-11';
const SPREAD = 'distribute-cpus-across-numa';

describe('model/kubelet: CPUs by the options of the static policy', () => {
  const cases: readonly [what: string, taken: string, expected: string][] = [
    ['are together without options', taken(10, []), '0-9'],
    ['are spread evenly over NUMA nodes', taken(10, [SPREAD]), '0-4,8-12'],
    ['are spread in whole cores, if those are required', taken(10, [SPREAD, 'full-pcpus-only']), '0-5,8-11'],
    ['are whole cores first, whatever their ids', taken(3, [], '0-7', FAR), '0-1,4'],
    ['are spread over cores', taken(3, ['distribute-cpus-across-cores'], '0-7', FAR), '0-2'],
    ['fill a partly used core first', taken(1, [], '1,4-15'), '1'],
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
