import assert from 'node:assert/strict';
import fc from 'fast-check';
import { findItems, parseQuery, queryText } from '../../console/data/list.ts';
import { type NodeItem, nodeItem, Paint } from '../../console/data/node.ts';
import { NODE_LIST, nodesByName, totalsOf } from '../../console/data/node-list.ts';
import { attentionText, shapeOf } from '../../console/data/shape.ts';
import { type PodItem, Store } from '../../console/data/store.ts';
import { dedicatedCpus, VM_LIST, vmsOf, WAITING_LIST } from '../../console/data/vm-list.ts';
import type { NodeContent, ShapeContent, WireRecord } from '../../console/data/wire.ts';
import { CpuSet } from '../../model/cpu-set.ts';

/** Two NUMA nodes of two SMT2 cores with alternating ids, as many vendors number them. */
const TURNS: ShapeContent = {
  cells: [
    [1, '1,3,5,7'],
    [0, '0,2,4,6'],
  ],
  cores: ['0,4', '1,5', '2,6', '3,7'],
  reserved: '0,4',
  physnets: [
    ['east', '1'],
    ['bond', '0-1'],
    ['lost', ''],
  ],
  tunnel: '0',
  policy: 'static',
  wholeCores: true,
};

const EMPTY: NodeContent = { problems: [], remedies: [], dpu: '', owners: [], inFlight: [], resources: [] };

const node = (more: Partial<NodeContent> & { name?: string } = {}, before?: NodeItem): NodeItem => {
  const { name = 'n', ...content } = { shape: TURNS, ...more };
  return nodeItem(name, content.shape && shapeOf(content.shape), { ...EMPTY, ...content }, before);
};
/** Everything by name. */
const BY_NAME = { text: '', sort: 'name', descending: false, filter: 'all' } as const;
const cpusPainted = ({ paint, shape }: NodeItem, kind: number) =>
  `${CpuSet.of([...paint.keys()].filter((slot) => paint[slot] === kind).map((slot) => shape!.slots[slot]!.cpu))}`;

it('counts what needs attention, as a sentence', () => {
  assert.deepEqual([0, 1, 2000].map(attentionText), ['0 need attention', '1 needs attention', '2,000 need attention']);
});

describe('the page’s data', () => {
  it('gives the layout of a host by NUMA node and core for any CPU numbering, with its networks', () => {
    const shape = shapeOf(TURNS);
    assert.deepEqual(
      shape.slots.map(({ cpu }) => cpu),
      [0, 4, 2, 6, 1, 5, 3, 7],
    );
    assert.deepEqual(
      shape.cells.map(({ id, physnets, tunnel }) => [id, physnets, tunnel]),
      [
        [0, ['bond'], true],
        [1, ['east', 'bond'], false],
      ],
    );
    assert.deepEqual(shape.placeless, ['lost']);
  });

  it('gives each thread its owner; reported owners take precedence over pods in flight', () => {
    const painted = node({ owners: [['a/vm', 'compute', '1,5', 1]], inFlight: [['a/next', 'bound', '1,3,5,7']] });
    assert.equal(cpusPainted(painted, Paint.owner), '1,5');
    assert.equal(cpusPainted(painted, Paint.inFlight), '3,7');
    assert.equal(cpusPainted(painted, Paint.reserved), '0,4');
    assert.equal(painted.freeCores, 1);
    assert.deepEqual([...painted.padding], [0, 0, 0, 0, 0, 1, 0, 0]);
  });

  const nodes = nodesByName([
    node({ name: 'worker-10', owners: [['east/upf', 'compute', '1,5', 0]] }),
    node({ name: 'worker-9', problems: ['silent'] }),
    node({ name: 'worker-2', shape: undefined, problems: ['no-report'], dpu: 'alive' }),
  ]);
  const queries: [string, Partial<typeof NODE_LIST.usual>, string][] = [
    ['everything, 9 before 10', {}, '2 9 10'],
    ['everything in reverse order', { descending: true }, '10 9 2'],
    ['a network', { text: 'tunnel' }, '9 10'],
    ['two words, in any case', { text: 'worker EAST/' }, '10'],
    ['a problem', { text: 'silent' }, '9'],
    ['problems only', { filter: 'problems' }, '2 9'],
    ['nodes in use', { filter: 'in-use' }, '10'],
    ['DPU hosts', { filter: 'dpu' }, '2'],
    ['most free cores first', { sort: 'freeCores', descending: true }, '9 10 2'],
    ['most VMs first, equals by name', { sort: 'pods', descending: true }, '10 2 9'],
  ];
  for (const [what, query, expected] of queries) {
    it(`finds ${what}`, () => {
      const matching = findItems(NODE_LIST, nodes, { ...BY_NAME, ...query });
      assert.equal(matching.map(({ name }) => name.replace('worker-', '')).join(' '), expected);
    });
  }

  it('sums up the cluster', () => {
    assert.deepEqual(totalsOf(nodes), {
      nodes: 3,
      withProblems: 2,
      cores: 8,
      freeCores: 2,
      unknownCores: 3,
      starting: 0,
      dpus: 1,
      dpusReady: 1,
      problemCounts: { silent: 1, 'no-report': 1 },
    });
  });

  it('ignores records of an unknown kind', () => {
    const store = new Store();
    store.take([['x', 1] as unknown as WireRecord, ['n', 'n1', { ...EMPTY, problems: ['no-report'] }]]);
    assert.deepEqual(store.nodes.get('n1')?.problems, ['no-report']);
  });
});

describe('owner marks', () => {
  const owner = (pod: string, cpus = ''): readonly [string, string, string, number] => [pod, 'compute', cpus, 0];
  const marksByPod = (item: NodeItem) =>
    Object.fromEntries(item.owners.map(([pod], index) => [pod, item.marks[index]]));

  it('stay with a VM while others come and go, in any order', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), { maxLength: 20 });
    fc.assert(
      fc.property(fc.array(names, { minLength: 1, maxLength: 8 }), (steps) => {
        let before: NodeItem | undefined;
        for (const pods of steps) {
          const owners = pods.map((pod) => owner(pod));
          const now = node({ owners }, before);
          const marks = marksByPod(now);
          assert.equal(new Set(now.marks).size, pods.length, 'each has its own');
          for (const [pod, mark] of Object.entries(before === undefined ? {} : marksByPod(before))) {
            if (pod in marks) assert.equal(marks[pod], mark, pod);
          }
          before = now;
        }
      }),
    );
  });

  it('are the same on every page with the same VMs, and shared by the containers of a pod', () => {
    const some = ['a/router', 'b/upf', 'c/amf'];
    const one = marksByPod(node({ owners: some.map((pod) => owner(pod)) }));
    const other = marksByPod(node({ owners: [...some].reverse().map((pod) => owner(pod)) }));
    assert.deepEqual(one, other);
    assert.deepEqual(new Set(node({ owners: [owner('a', '2'), owner('a', '3')] }).marks).size, 1);
  });

  it('have six colours before one repeats', () => {
    const owners = Array.from({ length: 6 }, (_, index) => owner(`vm-${index}`));
    assert.deepEqual([...node({ owners }).marks].sort(), [0, 1, 2, 3, 4, 5]);
  });
});

describe('the list of VMs', () => {
  const store = new Store();
  const upf: NodeContent['owners'] = [
    ['east/upf', 'compute', '2,6', 1],
    ['east/upf', 'side', '4', 0],
  ];
  const records: WireRecord[] = [
    ['n', 'n1', { ...EMPTY, shape: TURNS, owners: upf }],
    ['n', 'n2', { ...EMPTY, shape: TURNS, owners: [['west/du', 'compute', '1,3,5', 0]] }],
    ['r', 'u1', ['west/du', 'n2', '', 'broken', 'DPUNotReady', 'its DPU is dead', [['bring it back']]]],
    ['r', 'u2', ['west/masked', 'n2', '0:1', 'ok', 'MaskApplied', 'pinned', []]],
  ];
  before(() => store.take(records));
  const list = () => vmsOf(store.nodes.values(), store.running.values());

  it('has every owner once, including those with a mask and without dedicated CPUs', () => {
    assert.deepEqual(
      findItems(VM_LIST, list(), BY_NAME).map((vm) => [vm.name, vm.node, dedicatedCpus(vm).size, vm.verdict, vm.mask]),
      [
        ['east/upf', 'n1', 3, 'ok', ''],
        ['west/du', 'n2', 3, 'broken', ''],
        ['west/masked', 'n2', 0, 'ok', '0:1'],
      ],
    );
  });

  it('is searched by VM name, node and problem, filtered and sorted', () => {
    const names = (more: Partial<typeof VM_LIST.usual>) =>
      findItems(VM_LIST, list(), { ...BY_NAME, ...more }).map(({ name }) => name);
    assert.deepEqual(names({ text: 'N2 dpu' }), ['west/du']);
    assert.deepEqual(names({ filter: 'attention' }), ['west/du']);
    assert.deepEqual(names({ filter: 'mask' }), ['west/masked']);
    assert.deepEqual(names({ sort: 'verdict', descending: true }), ['west/du', 'east/upf', 'west/masked']);
  });

  it('is sorted by the number of CPUs without reading the CPU lists of each VM again and again', () => {
    const read: string[] = [];
    const vms = list().map((vm) => {
      const containers = () => {
        read.push(vm.name);
        return vm.containers;
      };
      return Object.defineProperty({ ...vm }, 'containers', { get: containers });
    });
    const sorted = findItems(VM_LIST, vms, { ...BY_NAME, sort: 'cpus' });
    assert.deepEqual(
      [sorted.map(({ name }) => name), read.sort()],
      [
        ['west/masked', 'east/upf', 'west/du'],
        ['east/upf', 'west/du', 'west/masked'],
      ],
    );
  });

  it('drops ended VMs', () => {
    store.take([['r', 'u2']]);
    assert.equal(list().length, 2);
    store.take([['n', 'n1']]);
    assert.equal(list().length, 1);
  });
});

describe('the list of waiting pods', () => {
  const pod = (name: string, more: Partial<PodItem>): PodItem => ({
    uid: name,
    key: name,
    namespace: 'east',
    name: `virt-launcher-${name}`,
    vm: name,
    cpus: 4,
    wholeCores: true,
    networks: [],
    ...more,
  });
  const at = (hour: string) => `2026-11-01T${hour}:00:00Z`;
  const pods = [
    pod('vm-10', { since: at('10'), verdict: 'broken', reason: 'DPUNotReady', text: 'its DPU is dead' }),
    pod('vm-9', { since: at('09'), nominated: 'worker-3' }),
    pod('dpdk', {
      vm: undefined,
      name: 'dpdk',
      namespace: 'west',
      networks: [['physnet0', 'required']],
      since: at('11'),
    }),
    pod('new', { since: undefined }),
  ];
  const queries: readonly [what: string, query: Partial<typeof WAITING_LIST.usual>, expected: string][] = [
    ['everything by namespace and name, 9 before 10', {}, 'new vm-9 vm-10 dpdk'],
    ['those that waited longest', { sort: 'since', descending: true }, 'vm-9 vm-10 dpdk new'],
    ['those that waited for the shortest time, one without a time first', { sort: 'since' }, 'new dpdk vm-10 vm-9'],
    ['the most urgent', { sort: 'verdict', descending: true }, 'vm-10 vm-9 dpdk new'],
    ['what needs attention', { filter: 'broken' }, 'vm-10'],
    ['VMs only', { filter: 'vms' }, 'new vm-9 vm-10'],
    ['a reason', { text: 'dpunotready' }, 'vm-10'],
    ['a nominated node', { text: 'worker-3' }, 'vm-9'],
    ['a network and a namespace', { text: 'PHYSNET0 west/' }, 'dpdk'],
  ];
  for (const [what, query, expected] of queries) {
    it(`finds ${what}`, () => {
      const matching = findItems(WAITING_LIST, pods, { ...BY_NAME, ...query });
      assert.equal(matching.map(({ key }) => key).join(' '), expected);
    });
  }
});

describe('a list’s query in the URL', () => {
  const { usual } = VM_LIST;

  it('is read back as it was written', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 50 }), fc.boolean(), (text, descending) => {
        for (const [sort, filter] of [['cpus', 'mask'] as const, ['verdict', 'all'] as const]) {
          const query = { text, sort, descending, filter };
          assert.deepEqual(parseQuery(queryText(query, usual), VM_LIST), query);
        }
      }),
    );
    assert.equal(queryText(usual, usual), '');
  });

  it('has defaults for unknown values', () => {
    assert.deepEqual(parseQuery('?sort=-colour&filter=none', VM_LIST), usual);
  });
});
