import assert from 'node:assert/strict';
import { whyStuck } from '../../../scheduler-plugin/controllers/evictions.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const SINGLE = { topologyManager: { policy: 'single-numa-node', scope: 'container' } };
const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });
const on = (uid: string, cpu: string) => {
  const pod = withUid(podOf(cpu), uid, { resourceVersion: '10' });
  return { pod, bound: { ...pod, spec: { ...pod.spec, nodeName: 'n1' } } };
};

/** Two pods with reservations are bound to n1: `a` with two CPUs, and `b`, which needs all eight of NUMA node 1. */
function inFlight(topology: object = SINGLE) {
  const under = extenderOf({ nodes: { n1: statusOf(topology) } });
  const [a, b] = [on('a', '2'), on('b', '8')];
  for (const { pod } of [a, b]) assert.deepEqual(under.filter(pod).NodeNames, ['n1']);
  for (const { bound } of [a, b]) under.see(bound);
  const dpuHealth = {
    isDpuHost: () => false,
    verdict: () => ({ ready: true, state: 'unknown', age: undefined }) as const,
  };
  const considered = (): string[] =>
    under.state.startingOn('n1').flatMap((pod) => {
      const why = whyStuck(pod, { state: under.state, dpuHealth });
      return why === undefined ? [] : [`${pod.uid} ${why.reason}`];
    });
  under.notified.length = 0;
  /** Another pod has taken NUMA node 0, so the kubelet puts `a` on NUMA node 1. */
  const takeCell0 = () =>
    under.state.reportChanged('n1', statusOf({ ...topology, assignments: [owned('x', '1-3,9-11')] }));
  return { ...under, considered, takeCell0 };
}

describe('lost places', () => {
  it('are found when the report arrives, and their pods are considered for eviction', () => {
    const { see, notified, takeCell0, considered } = inFlight();
    see(on('x', '6').bound);
    notified.length = 0;
    assert.deepEqual(considered(), []);
    takeCell0();
    assert.deepEqual(
      notified.filter((line) => line.startsWith('starting')),
      ['starting b'],
    );
    assert.deepEqual(considered(), ['b PlaceLost']);
  });

  it('are empty while the report is stale or missing, and on unknown nodes', () => {
    const { see, state, takeCell0 } = inFlight();
    see(on('x', '6').bound);
    takeCell0();
    assert.deepEqual([...state.lostPlaces.on('elsewhere')], []);
    state.setFlag('n1', 'stale', true);
    assert.deepEqual([...state.lostPlaces.on('n1')], []);
    state.setFlag('n1', 'stale', false);
    assert.deepEqual([...state.lostPlaces.on('n1')], ['b']);
    state.reportChanged('n1', undefined);
    assert.deepEqual([...state.lostPlaces.on('n1')], []);
  });

  it('include a list of the pods in a report that are no longer bound to its node', () => {
    const assignments = [
      owned('ended', '1,9'),
      owned('alive', '2,10'),
      owned('elsewhere', '3,11'),
      owned('ended', '4,12'),
    ];
    const { state, see } = extenderOf({ nodes: { n1: statusOf({ assignments }), n2: statusOf() } });
    see(on('alive', '2').bound);
    const elsewhere = withUid(podOf('2'), 'elsewhere');
    see({ ...elsewhere, spec: { ...elsewhere.spec, nodeName: 'n2' } });
    assert.deepEqual([...state.lostPlaces.goneFrom(state.fleet.get('n1')!)], ['ended', 'elsewhere']);
    assert.deepEqual([...state.lostPlaces.goneFrom(state.fleet.get('n2')!)], []);
  });
});
