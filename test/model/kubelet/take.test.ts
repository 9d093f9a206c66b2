import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { readCpuOptions } from '../../../model/kubelet/options.ts';
import { takeByTopology } from '../../../model/kubelet/static-policy.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { hostOf } from './arbitraries.ts';
import { simpleHost } from './fixture.ts';

/** Two NUMA nodes of eight CPUs, cores of two threads. */
function taken(count: number, options: readonly string[], free = '0-15', host = simpleHost(2, 8)): string {
  const given = readCpuOptions(Object.fromEntries(options.map((name) => [name, 'true'])));
  return `${takeByTopology(topologyOfHost(host), given, CpuSet.parse(free), count)}`;
}

/** Cores 0,4 to 3,7. */
const FAR = hostOf({ cells: 1, cores: 4, threads: 2, siblings: 'far', cellsPerSocket: 1 });

const SPREAD = 'distribute-cpus-across-numa';

describe('model/kubelet: CPUs by the options of the static policy', () => {
  const cases: readonly [what: string, taken: string, expected: string][] = [
    ['are together without options', taken(10, []), '0-9'],
    ['are spread evenly over NUMA nodes', taken(10, [SPREAD]), '0-4,8-12'],
    ['are spread in whole cores, if those are required', taken(10, [SPREAD, 'full-pcpus-only']), '0-5,8-11'],
    ['are whole cores first, whatever their ids', taken(3, [], '0-7', FAR), '0-1,4'],
    ['are spread over cores', taken(3, ['distribute-cpus-across-cores'], '0-7', FAR), '0-2'],
    ['fill a partly used core first', taken(1, [], '1,4-15'), '1'],
  ];
  for (const [what, cpus, expected] of cases) it(what, () => assert.equal(cpus, expected));
});
