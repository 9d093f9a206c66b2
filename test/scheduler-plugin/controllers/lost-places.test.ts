import assert from 'node:assert/strict';
import type { Evictions } from '../../../scheduler-plugin/controllers/evictions.ts';
import { createStuckPods } from '../../../scheduler-plugin/controllers/stuck-pods.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const SINGLE = { topologyManager: { policy: 'single-numa-node', scope: 'container' } };
const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });
const on = (uid: string, cpu: string) => {
  const pod = withUid(podOf(cpu), uid, { resourceVersion: '10' });
  return { pod, bound: { ...pod, spec: { ...pod.spec, nodeName: 'n1' } } };
};

/** Two pods are promised n1 and bound to it: `a` of two CPUs next to `b`, which needs all eight of NUMA node 1. */
function inFlight(topology: object = SINGLE) {
  const under = extenderOf({ nodes: { n1: statusOf(topology) } });
  const [a, b] = [on('a', '2'), on('b', '8')];
  for (const { pod } of [a, b]) assert.deepEqual(under.filter(pod).NodeNames, ['n1']);
  for (const { bound } of [a, b]) under.see(bound);
  const stuck = createStuckPods({
    state: under.state,
    isDpuHost: () => false,
    dpuHealth: { verdict: () => ({ ready: true, state: 'unknown', age: undefined }) },
  });
  const considered = (): string[] => {
    const found: string[] = [];
    const evictions: Evictions = { consider: ({ uid }, { reason }) => void found.push(`${uid} ${reason}`), stop() {} };
    for (const pod of under.state.startingOn('n1')) stuck.consider(pod, evictions);
    return found;
  };
  under.told.length = 0;
  /** Another pod has taken NUMA node 0, so the kubelet puts `a` on NUMA node 1. */
  const takeCell0 = () =>
    under.state.reportChanged('n1', statusOf({ ...topology, assignments: [owned('x', '1-3,9-11')] }));
  return { ...under, considered, takeCell0 };
}

describe('places that were lost', () => {
  it('are found when the report comes, and their pods are handed over to be evicted', () => {
    const { see, told, takeCell0, considered } = inFlight();
    see(on('x', '6').bound);
    told.length = 0;
    assert.deepEqual(considered(), []);
    takeCell0();
    assert.deepEqual(
      told.filter((line) => line.startsWith('starting')),
      ['starting b'],
    );
    assert.deepEqual(considered(), ['b PlaceLost']);
  });

  it('are empty once the report shows the pod', () => {
    const { see, state, takeCell0, considered } = inFlight();
    see(on('x', '6').bound);
    takeCell0();
    state.reportChanged('n1', statusOf({ ...SINGLE, assignments: [owned('b', '4-7,12-15')] }));
    assert.deepEqual(considered(), []);
  });

  it('are empty if the report shows pods that have ended', () => {
    const { takeCell0, considered } = inFlight();
    takeCell0();
    assert.deepEqual(considered(), []);
  });

  it('are empty without reservations, as after a takeover', () => {
    const under = extenderOf({ nodes: { n1: statusOf(SINGLE) } });
    for (const uid of ['a', 'b', 'x']) under.see(on(uid, uid === 'a' ? '2' : '8').bound);
    assert.deepEqual([...under.state.lostPlaces.on('n1')], []);
  });

  it('a node that aligns takes no pod by a place that moves once the kubelet lets go of an ended pod', () => {
    // By the report `a` goes to NUMA node 1, and NUMA node 0 has two CPUs left. Once the ended pod is gone, `a` gets the
    // six CPUs of NUMA node 0, where the network of `c` is.
    const nextTo = (uid: string) => withUid(podOf('2', ['physnet.plumbline.dev/physnet0']), uid);
    const answer = (assignments: ReturnType<typeof owned>[]) => {
      const under = extenderOf({ nodes: { n1: statusOf({ ...SINGLE, assignments }) } });
      if (assignments[0]?.podUID === 'alive') under.see(on('alive', '4').bound);
      assert.deepEqual(under.filter(on('a', '6').pod).NodeNames, ['n1']);
      return under.filter(nextTo('c')).NodeNames;
    };
    assert.deepEqual(answer([owned('ended', '1-2,9-10')]), []);
    assert.deepEqual(answer([owned('alive', '1-2,9-10')]), ['n1']);
  });
});
