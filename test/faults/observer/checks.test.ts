import assert from 'node:assert/strict';
import { type Invariant, violationsIn } from './checks.ts';
import type { NodeView, PodView, Snapshot } from './snapshot.ts';

const NODE: NodeView = {
  name: 'n',
  cores: [
    [0, 4],
    [1, 5],
    [2, 6],
    [3, 7],
  ],
  reserved: [0, 4],
  physnets: { physnet1: [1, 3, 5, 7] },
  owned: [
    { pod: 'a', container: 'compute', cpus: [1, 5] },
    { pod: 'b', container: 'compute', cpus: [2, 6] },
  ],
  reported: [{ pod: 'a', container: 'compute', cpus: [1, 5] }],
  vswitch: [0],
};
const A: PodView = {
  uid: 'a',
  name: 'a',
  node: 'n',
  phase: 'Running',
  leaving: false,
  cpus: 2,
  aligned: true,
  physnet: 'physnet1',
  devices: ['physnet.plumbline.dev/physnet1'],
};
const { physnet: _, ...plain } = A;
const B: PodView = { ...plain, uid: 'b', name: 'b', devices: [] };
const sound: Snapshot = { nodes: [NODE], pods: [A, B] };
const withNode = (change: Partial<NodeView>): Snapshot => ({ nodes: [{ ...NODE, ...change }], pods: [A, B] });
const withPod = (change: Partial<PodView>): Snapshot => ({ nodes: [NODE], pods: [{ ...A, ...change }, B] });
const owns = (pod: string, cpus: readonly number[]) => ({ pod, container: 'compute', cpus });

describe('the invariants of the observer', () => {
  it('hold in a healthy cluster', () => assert.deepEqual(violationsIn(sound), []));

  const owned = (...list: NodeView['owned']) => withNode({ owned: list });
  const broken: readonly [string, Snapshot, Invariant, RegExp][] = [
    ['two owners of a CPU', owned(owns('a', [1, 5]), owns('b', [5, 2, 6])), 'promised-twice', /CPU 5 belongs to a and/],
    ['a reserved CPU that is owned', owned(owns('a', [1, 5]), owns('c', [4])), 'promised-twice', /reserved/],
    ['more CPUs bound than exist', withPod({ cpus: 6 }), 'promised-twice', /8 CPUs are promised to 2 pods/],
    ['Open vSwitch on a CPU of a VM', withNode({ vswitch: [0, 5] }), 'vswitch', /may run on CPUs 5 of a/],
    ['half a core', owned(owns('a', [1, 3])), 'misaligned', /half of the cores 1\+5,3\+7/],
    ['fewer CPUs than requested', withPod({ cpus: 4 }), 'misaligned', /2 CPUs instead of 4/],
    ['CPUs away from the network', owned(owns('a', [2, 6])), 'misaligned', /away from physnet1/],
    ['an odd number of CPUs', withPod({ cpus: 3, phase: 'Pending' }), 'unpadded', /admitted with 3 CPUs/],
    ['a missing request for the network', withPod({ devices: [] }), 'unpadded', /no request for physnet/],
  ];
  for (const [name, snapshot, invariant, text] of broken) {
    it(`are violated by ${name}`, () => {
      const found = violationsIn(snapshot).filter((one) => one.invariant === invariant);
      assert.match(found.map((one) => one.text).join('\n'), text);
    });
  }

  it('are not violated by a pod that is being deleted', () => {
    const snapshot = { nodes: [{ ...NODE, vswitch: [0, 1] }], pods: [{ ...A, leaving: true }] };
    assert.deepEqual(violationsIn(snapshot), []);
  });
});
