import assert from 'node:assert/strict';
import type { HostReport } from '../../../model/kubelet/host-report.ts';
import type { PlacementNeeds } from '../../../model/placement/needs.ts';
import { lostPlaces, placeOnFit } from '../../../model/placement/place.ts';
import { needs, node, physnet, place, REPORT, TUNNEL } from './fixture.ts';

type Placement = ReturnType<typeof placeOnFit>;

/** Half of a core of each of four NUMA nodes is reserved, and whole cores are distributed. */
const HANGING: Partial<HostReport> = {
  cells: Array.from({ length: 4 }, (_, id) => ({ id, cpus: `${id * 8}-${id * 8 + 7}` })),
  cores: Array.from({ length: 16 }, (_, core) => `${core * 2}-${core * 2 + 1}`),
  reserved: '0,8,16,24',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'true' } },
};
/** The CPUs and NUMA nodes of a placement, or why there is none. */
function outcomeOf(placement: Placement): string {
  if ('kind' in placement) return placement.kind;
  if ('unpredictable' in placement) return `unpredictable: ${placement.unpredictable}`;
  return `${placement.containers.map(({ cpus }) => `${cpus}`).join(' ')} on ${placement.cells}`;
}
/** The same for a pod of so many CPUs that requires these physnets. */
function at(
  cpus: number,
  networks: readonly string[] = [],
  changes: Partial<HostReport> = {},
  more: Partial<PlacementNeeds> = {},
): string {
  const required = networks.map((name) => physnet(name));
  return outcomeOf(place(needs('a', cpus, required, more), node(changes)));
}
const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });
const ONE_OFFLINE = {
  cells: [REPORT.cells[0]!, { id: 1, cpus: '8-14' }],
  cores: [...REPORT.cores.slice(0, 7), '14'],
  offline: '15',
};
const UNEVEN = [...REPORT.cores.slice(0, 7), '14', '15'];
const busy = (cpus: string) => ({ assignments: [{ podUID: 'x', container: 'c', cpus }] });
const BUSY_EAST = busy('2-7');
const PREFERRING = needs('a', 8, [physnet('east', 'preferred')]);
const passthrough = { spansCells: true };
describe('networks', () => {
  const cases: readonly [string, string, string][] = [
    ['a required physnet moves the VM to its node', at(4, ['west']), '8-11 on 1'],
    ['a physnet that the node lacks is refused', at(4, ['ghost']), 'no-such-network'],
    ['a physnet without a known NUMA node has no effect', at(4, ['vague']), '2-5 on 0'],
    ['the affinity preferred never refuses', outcomeOf(place(PREFERRING, node())), '8-15 on 1'],
    ['a full local node is refused, though the remote one is free', at(2, ['east'], BUSY_EAST), 'network-elsewhere'],
    ['two distant physnets are refused for a guest with one NUMA node', at(2, ['east', 'west']), 'cannot-split'],
    [
      'two physnets are refused for a spanning guest that may be put on one NUMA node',
      at(2, ['east', 'west'], {}, passthrough),
      'may-not-span',
    ],
    ['a VM larger than the NUMA node of its network is refused', at(8, ['east']), 'larger-than-cells'],
    [
      'two physnets are accepted for a spanning guest if the CPUs really span',
      at(10, ['east', 'west'], {}, passthrough),
      '2-3,8-15 on 0,1',
    ],
    ['a spanning guest needs one node for its network, not all', at(10, ['east'], {}, passthrough), '2-11 on 0,1'],
  ];
  for (const [name, actual, expected] of cases) it(name, () => assert.equal(actual, expected));
});
describe('CPUs', () => {
  const plain = { cpuManager: { policy: 'static' } };
  const split = { reserved: '6,8' };
  const whole = { wholeCores: true };
  const cases: readonly [string, string, string][] = [
    ['an unpadded launcher is accepted on a plain static node', at(3, [], plain), '2-4 on 0'],
    [
      'a pod without CPUs of its own is accepted on a node without the static CPU manager',
      outcomeOf(placeOnFit(needs('a', 0.5), node({ cpuManager: { policy: 'none' } }), [])),
      ' on ',
    ],
    ['unreserved CPUs on which the virtual switch polls are refused', at(2, [], { pmdCPUs: '3' }), 'polled-cpus'],
    ['reserved CPUs that split a core leave the whole cores', at(2, [], split, whole), '0-1 on 0'],
    [
      'reserved CPUs that split a core are refused where CPUs are distributed across NUMA nodes',
      at(2, [], { ...split, cpuManager: HANGING.cpuManager! }, whole),
      'split-reservation',
    ],
    ['the same is refused as a hang where the pod would cause one', at(22, [], HANGING), 'hangs-kubelet'],
    [
      'CPUs that the kubelet would give twice, because cores differ in size, are refused',
      at(2, [], { ...plain, cores: UNEVEN, ...busy('2') }),
      'uneven-cores',
    ],
    ['a host with an offline thread is refused, with the CPU', at(2, [], ONE_OFFLINE), 'offline-threads'],
  ];
  for (const [name, actual, expected] of cases) it(name, () => assert.equal(actual, expected));
});
describe('reserved CPUs 0-1 of the cores 0,32 and 1,33', () => {
  const cores = Array.from({ length: 32 }, (_, i) => `${i},${i + 32}`);
  const split = (assignments: HostReport['assignments']) =>
    node({ cells: [{ id: 0, cpus: '0-63' }], cores, reserved: '0-1', physnets: [], tunnel: undefined, assignments });

  it('pods of 4 CPUs fill the other 30 cores', () => {
    const assignments: ReturnType<typeof owned>[] = [];
    for (;;) {
      const placement = place(needs(`${assignments.length}`, 4, [], { wholeCores: true }), split(assignments));
      if (!('containers' in placement)) break;
      assignments.push(owned(`${assignments.length}`, `${placement.containers[0]?.cpus}`));
    }
    assert.deepEqual([assignments.length, assignments[0]?.cpus], [15, '2-3,34-35']);
    assert.equal(assignments.at(-1)?.cpus, '30-31,62-63');
  });
});
describe('34 NUMA nodes, of which two have CPUs', () => {
  const cells = Array.from({ length: 34 }, (_, id) => ({ id, memory: 2 ** 30 }));
  const host = (assignments: HostReport['assignments'], policy = 'restricted') =>
    node({
      cells: [
        { id: 0, cpus: '0-71' },
        { id: 1, cpus: '72-143' },
      ],
      cores: Array.from({ length: 144 }, (_, id) => `${id}`),
      reserved: '0-1',
      topologyManager: { policy, options: { 'max-allowable-numa-nodes': '64' } },
      memoryManager: { policy: 'None', cells },
      physnets: [],
      assignments,
    });
  const owner = [{ podUID: 'x', container: 'c', cpus: '72-73' }];
  const rows: readonly [string, Placement, string][] = [
    ['70 CPUs are on one', place(needs('a', 70), host([])), '2-71 on 0'],
    ['71 CPUs are refused with 70 free on each', place(needs('a', 71), host(owner)), 'no-common-node'],
    ['the NUMA node of the tunnel is respected', place(needs('a', 4, [TUNNEL]), host([])), '72-75 on 1'],
  ];
  for (const [title, placement, expected] of rows) it(title, () => assert.equal(outcomeOf(placement), expected));
});
describe('pods in flight', () => {
  const lastFour = busy('2-11');

  it('the last four CPUs are promised once', () => {
    assert.equal(outcomeOf(place(needs('a', 4), node(lastFour))), '12-15 on 1');
    assert.equal(outcomeOf(place(needs('b', 4), node(lastFour), [needs('a', 4)])), 'too-few-whole-cores');
    assert.equal(outcomeOf(place(needs('b', 2), node(lastFour), [needs('a', 2)])), '14-15 on 1');
  });

  it('whole cores reserved on another node are not counted', () => {
    const inFlight = [needs('a', 6, [physnet('east')])];
    assert.equal(outcomeOf(place(needs('b', 8, [physnet('west')]), node(), inFlight)), '8-15 on 1');
    assert.equal(outcomeOf(place(needs('b', 2, [physnet('east')]), node(), inFlight)), 'network-elsewhere');
  });

  it('a pod is refused if its required place depends on the order of admission', () => {
    // A pod in flight without networks takes east’s last cores if it comes first, so east cannot be promised.
    const host = node(busy('2-5'));
    assert.equal(outcomeOf(place(needs('b', 2, [physnet('east')]), host, [needs('a', 2)])), 'network-elsewhere');
    const later = place(needs('b', 2), host, [needs('a', 2, [physnet('east')])]);
    assert.equal(outcomeOf(later), 'in-flight');
  });
});

const SINGLE = { topologyManager: { policy: 'single-numa-node' } };
/** NUMA node 0 has 2-7 free and NUMA node 1 has 8-15. If both are equally good, the kubelet takes the lower one. */
const SIX_TWO = [needs('a', 2), needs('b', 8)];
describe('lost places', () => {
  it('are those of later pods that the kubelet would refuse', () => {
    const host = node({ ...SINGLE, assignments: [owned('x', '2-7')] });
    assert.deepEqual([...lostPlaces(host, SIX_TWO, new Set())], ['b']);
  });

  it('are not those of pods that the report shows', () => {
    const host = node({ ...SINGLE, assignments: [owned('x', '2-7'), owned('b', '8-15')] });
    assert.deepEqual([...lostPlaces(host, [needs('b', 8), needs('c', 2)], new Set())], ['c']);
  });

  it('are lost with and without the ended pods', () => {
    const host = node({ ...SINGLE, assignments: [owned('x', '2-7'), owned('y', '8-11')] });
    const lost = (pods: PlacementNeeds[], ...gone: string[]) => [...lostPlaces(host, pods, new Set(gone))].join();
    assert.deepEqual([lost(SIX_TWO, 'y'), lost([needs('c', 6), ...SIX_TWO], 'y')], ['b', 'b']);
    assert.equal(lost([needs('c', 6), needs('a', 2)], 'x', 'y'), '');
  });

  it('are looked for among the first eight pods, and the first two on a host with more than four NUMA nodes', () => {
    const pods = [...Array.from({ length: 7 }, (_, i) => needs(`p${i}`, 2)), needs('q', 8), needs('r', 8)];
    const cellsOf = (count: number) => {
      const cores = Array.from({ length: 4 * count }, (_, core) => `${2 * core}-${2 * core + 1}`);
      const cells = Array.from({ length: count }, (_, id) => ({ id, cpus: `${8 * id}-${8 * id + 7}` }));
      return node({ ...SINGLE, cells, cores, assignments: [owned('x', `16-${8 * count - 1}`)] });
    };
    const lost = (cells: number, of: PlacementNeeds[]) => [...lostPlaces(cellsOf(cells), of, new Set())].join();
    const large = ['a', 'b', 'c'].map((uid) => needs(uid, 10));
    assert.deepEqual([lost(4, pods), lost(5, pods.slice(5))], ['q', '']);
    assert.deepEqual([lost(5, large), lost(4, large)], ['a,b', 'a,b,c']);
  });
});
