import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { readCpuOptions } from '../../../model/kubelet/options.ts';
import { podRequestOf, type RequestingPod, reducedRequest } from '../../../model/kubelet/pod-request.ts';
import { takeByTopology } from '../../../model/kubelet/static-policy.ts';
import { HangError, takeDistributed } from '../../../model/kubelet/take.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { container, pod, simpleHost } from './fixture.ts';

const CORES = 'distribute-cpus-across-cores';
const ALIGNED = [CORES, 'align-by-socket'];
const NEAR = simpleHost(1, 8);
const SOCKETS = createHost({
  cells: Array.from({ length: 4 }, (_, id) => ({ id, cpus: `${4 * id}-${4 * id + 3}` })),
  cores: [0, 2, 4, 6, 8, 10, 12, 14].map((cpu) => `${cpu}-${cpu + 1}`),
  sockets: ['0-7', '8-15'].map((cpus, id) => ({ id, cpus })),
});
/** Three free CPUs on each NUMA node of the first socket; of the second, one is free and one is full. */
const BUSY = '0-2,4-6,8-11';
describe('CPUs with distribute-cpus-across-cores', () => {
  for (const [what, count, options, free, host, version, expected] of [
    ['are spread by id before 1.38', 4, [CORES], '0-7', NEAR, '1.37.0', '0-3'],
    ['are one of each core in turn from 1.38 on', 5, [CORES], '0-7', NEAR, '1.38.0', '0-2,4,6'],
    ['are of the core with fewer free threads first', 1, [CORES], '0-5,7', NEAR, '1.38.0', '7'],
    ['may leave a socket that has room before 1.38', 6, ALIGNED, BUSY, SOCKETS, '1.37.0', '0-1,8-11'],
    ['stay on a socket that has room from 1.38 on', 6, ALIGNED, BUSY, SOCKETS, '1.38.0', '0-2,4-6'],
    ['are of both sockets if none has room', 8, ALIGNED, BUSY, SOCKETS, '1.38.0', '0,2,4,6,8-11'],
  ] as const) {
    it(what, () => {
      const cpuOptions = readCpuOptions(Object.fromEntries(options.map((name) => [name, 'true'])));
      const behaviour = behaviourOf(`v${version}`)!;
      const topology = topologyOfHost(host);
      const cpus = takeByTopology(topology, cpuOptions, CpuSet.parse(free), count, { behaviour });
      assert.equal(`${cpus}`, expected);
    });
  }
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

  const sockets: readonly [what: string, free: string, before: string, from37: string][] = [
    ['of one socket, where the balance is as good', '0-5,8-15', '0-2,8-10', '8-10,12-14'],
    ['of one socket with unequal shares', '0-5,8-11', '0-2,8-10', '0-5'],
    ['of two sockets if none has room, on fewer NUMA nodes', '0-1,4-5,8-11', '0-1,4-5,8-9', '0-1,8-11'],
  ];
  for (const [what, free, before, from37] of sockets) {
    it(`with align-by-socket, from 1.37 on, are ${what}`, () => {
      const options = readCpuOptions({ 'distribute-cpus-across-numa': 'true', 'align-by-socket': 'true' });
      const topology = topologyOfHost(SOCKETS);
      const of = (version: string) =>
        `${takeByTopology(topology, options, CpuSet.parse(free), 6, { behaviour: behaviourOf(version)! })}`;
      assert.deepEqual([of('v1.36.3'), of('v1.37.0')], [before, from37]);
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

describe('model/kubelet: requests of a pod', () => {
  it('are devices even of a pod that is not Guaranteed, and then no CPUs and no memory', () => {
    const [one] = podRequestOf(pod('a', [{ name: 'c', resources: { limits: { cpu: '2', 'x/nic': '1' } } }])).containers;
    assert.deepEqual([one?.cpus, [...(one?.devices ?? [])], one?.memory.size], [0, [['x/nic', 1]], 0]);
  });

  it('are stored without containers if none has exclusive CPUs', () => {
    const [shared, owning] = [container('a', '500m', { 'x/nic': '1' }), container('b', 2)];
    assert.deepEqual(reducedRequest(podRequestOf(pod('a', [shared], [shared]))).containers, []);
    const mixed = podRequestOf(pod('a', [shared, owning]));
    assert.equal(reducedRequest(mixed), mixed);
  });
});
describe('model/kubelet: the QoS class', () => {
  const of = (resources: { requests?: Record<string, string>; limits?: Record<string, string> }): RequestingPod =>
    pod('a', [{ name: 'c', resources }]);
  const both = { cpu: '1', memory: '1Gi' };
  const cases: [what: string, pod: RequestingPod, guaranteed: boolean][] = [
    ['limits of CPU and memory', of({ limits: both }), true],
    ['no limit of CPU', of({ limits: { memory: '1Gi' } }), false],
    ['a smaller request', of({ limits: both, requests: { cpu: '500m' } }), false],
    ['an equal request', of({ limits: both, requests: { cpu: '1000m', memory: '1024Mi' } }), true],
    ['one init container without limits', pod('a', [container('c', 1)], [{ name: 'i' }]), false],
    ['another class in the status', { ...of({ limits: both }), status: { qosClass: 'Burstable' } }, false],
    ['limits of the pod', { spec: { containers: [{ name: 'c' }], resources: { limits: both } } }, true],
  ];
  for (const [what, one, guaranteed] of cases)
    it(`is ${guaranteed ? '' : 'not '}Guaranteed with ${what}`, () =>
      assert.equal(podRequestOf(one).guaranteed, guaranteed));
});
