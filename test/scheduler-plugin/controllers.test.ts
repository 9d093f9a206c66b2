import assert from 'node:assert/strict';
import type { Pod } from '../../kube/resources.ts';
import { PLACE_LOST } from '../../model/names.ts';
import type { DpuVerdict } from '../../scheduler-plugin/cluster/dpu-health.ts';
import type { PodView } from '../../scheduler-plugin/cluster/pod-view.ts';
import { type Evictions, stuckPodOf, whyStuck } from '../../scheduler-plugin/controllers/evictions.ts';
import { extenderOf, onNode, owned, podOf, statusOf, viewOf, withUid } from './extender-fixture.ts';

type EvictionReason = Parameters<Evictions['consider']>[1];

const startOf = (uid: string, { hostNetwork = false, version = '1' } = {}): PodView => {
  const pod = withUid(podOf('4'), uid, { resourceVersion: version });
  return viewOf(onNode({ ...pod, spec: { ...pod.spec, hostNetwork } as Pod['spec'] }))!;
};
const DEAD: DpuVerdict = { ready: false, state: 'dead', age: 61.6 };
interface Scene {
  readonly starting?: readonly PodView[];
  readonly refusal?: string;
  readonly lost?: readonly string[];
  readonly isHost?: boolean;
  readonly verdict?: DpuVerdict;
}
function stuckOf({ starting = [], refusal, lost = [], isHost = true, verdict = DEAD }: Scene) {
  const asked: string[] = [];
  const facts: Parameters<typeof whyStuck>[1] = {
    state: {
      startingOn: (node) => (node === 'n1' ? [...starting] : []),
      hostRefusals: { of: (node: string) => (node === 'n1' ? refusal : undefined) } as never,
      lostPlaces: { on: (node: string) => new Set(node === 'n1' ? lost : []) } as never,
    },
    dpuHealth: {
      isDpuHost: (node) => node === 'n1' && isHost,
      verdict(node) {
        asked.push(node);
        return verdict;
      },
    },
  };
  const whyOf = (pod: PodView) => timeless(whyStuck(pod, facts));
  const stuck = (pod: PodView) => {
    const found = stuckPodOf(pod, facts);
    return found && { ...found, why: timeless(found.why) };
  };
  return { stuck, whyOf, asked };
}
function timeless(why: EvictionReason | undefined): EvictionReason | undefined {
  return why && { ...why, text: why.text.replace(/\d{4}-\d\d-\d\dT[:\d]{8}Z/, 'TIME') };
}

describe('a pod that cannot start on its node', () => {
  const died = 'the DPU of node n1 has died before the pod started: last renewal TIME';
  const CASES: readonly [string, Scene, EvictionReason | undefined][] = [
    ['its node’s DPU is dead', {}, { reason: 'DPUNotReady', text: died }],
    ['the node is no DPU host', { isHost: false }, undefined],
    [
      'its place is lost',
      { lost: ['a'] },
      { reason: 'PlaceLost', text: `node n1 ${PLACE_LOST}: its kubelet would refuse the pod` },
    ],
    [
      'the agent has refused it, with or without other faults',
      { refusal: 'CPUs 1-2 are elsewhere', lost: ['a'] },
      { reason: 'AllocationRefused', text: 'n1: CPUs 1-2 are elsewhere' },
    ],
  ];
  for (const [what, scene, why] of CASES)
    it(`${what}: ${why?.reason ?? 'it can start'}`, () => assert.deepEqual(stuckOf(scene).whyOf(startOf('a')), why));

  it('is not the mirror of a static pod, which its kubelet would create again', () => {
    const mirror = { ...startOf('a'), kubeletUid: '0123456789abcdef0123456789abcdef' };
    assert.equal(stuckOf({ refusal: 'CPUs 1-2 are elsewhere' }).whyOf(mirror), undefined);
  });

  it('does not need a DPU on the host network', () => {
    const { whyOf, asked } = stuckOf({});
    assert.deepEqual([whyOf(startOf('a', { hostNetwork: true })), asked], [undefined, []]);
  });

  it('is evaluated in its current version, until it has started', () => {
    const newest = startOf('a', { version: '7' });
    const { stuck } = stuckOf({ starting: [startOf('b'), newest] });
    assert.deepEqual(stuck(startOf('a')), { pod: newest, why: { reason: 'DPUNotReady', text: died } });
    assert.equal(stuck(startOf('c')), undefined, 'it has started');
    const { node: _, ...nowhere } = startOf('a');
    assert.equal(stuck({ ...nowhere, node: undefined }), undefined);
    assert.equal(stuckOf({ starting: [newest], isHost: false }).stuck(startOf('a')), undefined, 'it can start');
  });
});
const on = (uid: string, cpu: string, nodeName = 'n1') => {
  const pod = withUid(podOf(cpu), uid, { resourceVersion: '10' });
  return { pod, bound: onNode(pod, nodeName) };
};
describe('lost places', () => {
  const topology = { topologyManager: { policy: 'single-numa-node', scope: 'container' } };

  it('are found when the report arrives, as long as it is current, and their pods are considered for eviction', () => {
    const { state, filter, see, notified } = extenderOf({ nodes: { n1: statusOf(topology) } });
    // `b` needs all eight CPUs of NUMA node 1, next to `a` with two CPUs.
    const pods = [on('a', '2'), on('b', '8')];
    for (const { pod } of pods) assert.deepEqual(filter(pod).NodeNames, ['n1']);
    for (const { bound } of [...pods, on('x', '6')]) see(bound);
    const lost = () => [...state.lostPlaces.on('n1')];
    assert.deepEqual(lost(), []);
    notified.length = 0;
    // Another pod has taken NUMA node 0, so the kubelet puts `a` on NUMA node 1.
    state.reportChanged('n1', statusOf({ ...topology, assignments: [owned('x', '1-3,9-11')] }));
    assert.deepEqual(
      notified.filter((line) => line.startsWith('starting')),
      ['starting b'],
    );
    assert.deepEqual([lost(), [...state.lostPlaces.on('elsewhere')]], [['b'], []]);
    state.setFlag('n1', 'stale', true);
    assert.deepEqual(lost(), []);
    state.setFlag('n1', 'stale', false);
    assert.deepEqual(lost(), ['b']);
    state.reportChanged('n1', undefined);
    assert.deepEqual(lost(), []);
  });

  it('are found again when the pod that has the place ends, before the next report', () => {
    const { state, filter, see } = extenderOf({ nodes: { n1: statusOf(topology) } });
    const pods = [on('a', '2'), on('b', '8')];
    for (const { pod } of pods) filter(pod);
    const other = on('x', '6').bound;
    for (const bound of [...pods.map(({ bound }) => bound), other]) see(bound);
    state.reportChanged('n1', statusOf({ ...topology, assignments: [owned('x', '1-3,9-11')] }));
    assert.deepEqual([...state.lostPlaces.on('n1')], ['b']);
    see(other, { phase: 'Succeeded' });
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
    see(on('elsewhere', '2', 'n2').bound);
    assert.deepEqual([...state.lostPlaces.goneFrom(state.fleet.get('n1')!)], ['ended', 'elsewhere']);
    assert.deepEqual([...state.lostPlaces.goneFrom(state.fleet.get('n2')!)], []);
  });
});

const STATIC_UID = '0123456789abcdef0123456789abcdef';
/** The mirror of a static pod as the kubelet creates it: the API server gives it a different uid. */
const mirror = (hash = STATIC_UID) =>
  withUid(podOf('4'), 'mirror-uid', {
    namespace: 'kube-system',
    annotations: { 'kubernetes.io/config.hash': hash, 'kubernetes.io/config.mirror': hash },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'node-uid', controller: true }],
  });
describe('static pods', () => {
  const withPod = statusOf({ assignments: [owned(STATIC_UID, '1-2,9-10')] });

  it('have a reservation until the report shows them', () => {
    const { state, see, gone } = extenderOf({ nodes: { n1: statusOf() } });
    const bound = onNode(mirror());
    see(bound, { phase: 'Running' });
    assert.equal(state.reservations.assumedOn('n1').length, 1);
    state.reportChanged('n1', withPod);
    assert.equal(state.reservations.assumedOn('n1').length, 0);
    gone(bound);
    assert.equal(state.reservations.size, 0);
  });
});
