import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Pod } from '../../kube/resources.ts';
import { type ExtenderUnderTest, extenderOf, onNode, podOf, reader, statusOf, withUid } from './extender-fixture.ts';

/** A node with this many of its 14 CPUs free. */
const withFree = (cpus: number): NodeTopologyStatus => {
  const cores = [1, 2, 3, 4, 5, 6, 7].slice(cpus / 2);
  const owned = cores.flatMap((core) => [core, core + 8]).join();
  return statusOf({ assignments: owned === '' ? [] : [{ podUID: 'other', container: 'compute', cpus: owned }] });
};
const four = (uid: string) => withUid(podOf('4'), uid, { resourceVersion: '10' });
const passed = ({ filter }: ExtenderUnderTest, uid: string, crowd = 0) => filter(four(uid), undefined, crowd).NodeNames;

/** Reserves a node of its own for each of so many other pods, for ten seconds. */
function crowd({ state, clock }: ExtenderUnderTest, pods: number, namespaceOf: (i: number) => string): void {
  const pod = reader.read(four('x'));
  for (let i = 0; i < pods; i++) {
    const places = new Map([[`node-${i}`, { cpus: undefined, score: 0 }]]);
    const common = { pod, places, version: '1', expires: clock.now + 10 };
    state.reservations.reserve({ namespace: namespaceOf(i), uid: `p${i}`, ...common });
  }
}

/** A tenant's pods that name their node: the kubelet has not decided yet, or never will. */
const NAMED: readonly [what: string, cpus: readonly string[], metadata?: object][] = [
  ['one CPU, of which the kubelet gives no half core', ['1']],
  ['more CPUs than the node has', ['40', '41', '42']],
  ['half cores and more than the node has, of ten sizes', ['1', '3', '5', '7', '9', '11', '13', '15', '40', '42']],
  [
    'a mirror pod that no kubelet made, with a finalizer',
    ['12'],
    { annotations: { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.hash': 'x' } },
  ],
];

describe('pods in flight that were never predicted here', () => {
  for (const [what, cpus, metadata = {}] of NAMED)
    it(`close no node if they ask for ${what}`, () => {
      const under = extenderOf({ nodes: { n1: withFree(14), n2: withFree(14) } });
      for (const node of ['n1', 'n2'])
        for (const [i, cpu] of cpus.entries())
          under.see(onNode(withUid(podOf(cpu), `${node}-${i}`, { namespace: 'tenant', ...metadata }), node));
      assert.deepEqual(passed(under, 'victim').toSorted(), ['n1', 'n2']);
    });

  it('count for the CPUs that the kubelet would give them, also next to a promise that they may break', () => {
    const under = extenderOf({ nodes: { n1: withFree(8) } });
    under.see(onNode(withUid(podOf('6'), 'named', { namespace: 'tenant' })));
    assert.deepEqual(passed(under, 'victim'), []);
    const promised = extenderOf({ nodes: { n1: withFree(8) } });
    assert.deepEqual(passed(promised, 'a'), ['n1']);
    promised.see(onNode(withUid(podOf('6'), 'named', { namespace: 'tenant' })));
    assert.deepEqual(promised.filter(withUid(podOf('2'), 'victim')).NodeNames, ['n1']);
  });

  const minuteOf = ({ state, clock }: ExtenderUnderTest, seconds: number, isReporting = true) => {
    for (let second = 0; second < seconds; second++, clock.now++)
      state.reservations.expireBound(clock.now, () => isReporting);
  };
  const DELETED = { deletionTimestamp: '2026-11-01T10:00:30Z', deletionGracePeriodSeconds: 30 };
  for (const [what, seconds, isReporting, metadata, fits] of [
    ['for a minute in which the agent reports', 60, true, {}, false],
    ['no longer than that', 61, true, {}, true],
    ['as long as the agent is silent', 600, false, {}, false],
    ['while it is being deleted', 30, false, DELETED, false],
    ['no longer than its grace period', 32, false, DELETED, true],
  ] as const)
    it(`hold their room ${what}`, () => {
      const under = extenderOf({ nodes: { n1: withFree(8) } });
      const pod = onNode(withUid(podOf('8'), 'named', { namespace: 'tenant', ...metadata }));
      under.see(pod);
      minuteOf(under, seconds, isReporting);
      under.see(pod);
      assert.equal(passed(under, 'victim').length > 0, fits);
    });
});

/** What a tenant may change of a pod that exists, at and above the limit of a reader. */
const entries = (count: number, key: (i: number) => string, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [key(i), value]));
const owner = (more: object) => ({ apiVersion: 'v1', kind: 'ReplicaSet', name: 'n', uid: 'u', ...more });
const CHANGES: readonly [what: string, metadata: object][] = [
  ...[1024, 1030, 5000].map((count): [string, object] => [
    `${count} labels`,
    { labels: entries(count, (i) => `kubevirt.io/${i}`, 'x') },
  ]),
  ...[16_384, 16_385, 200_000].flatMap((length) =>
    ['k8s.v1.cni.cncf.io/networks', 'plumbline.dev/cpu-mask', 'plumbline.dev/numa-affinity', 'kubevirt.io/domain'].map(
      (name): [string, object] => [`${length} characters in ${name}`, { annotations: { [name]: '0'.repeat(length) } }],
    ),
  ),
  ['65 owners', { ownerReferences: Array.from({ length: 65 }, (_, i) => owner({ uid: `${i}` })) }],
  ['the long name of an owner', { ownerReferences: [owner({ name: 'n'.repeat(254) })] }],
  ['an unknown form of an owner', { ownerReferences: [{ name: 7 }] }],
  ['a name of the kubelet’s pods', { annotations: { 'kubernetes.io/config.hash': '0'.repeat(32) } }],
];

describe('a pod with CPUs that becomes odd', () => {
  for (const isFirstSeenOdd of [false, true]) {
    for (const [what, metadata] of CHANGES)
      it(`keeps them with ${what}${isFirstSeenOdd ? ', also if it is first seen so' : ''}`, () => {
        const under = extenderOf({ nodes: { n1: withFree(8) } });
        const bound = onNode(withUid(podOf('8'), 'a', { resourceVersion: '10' }));
        if (!isFirstSeenOdd) {
          assert.deepEqual(under.filter(withUid(podOf('8'), 'a')).NodeNames, ['n1']);
          under.see(bound);
        }
        const status = { phase: 'Pending', qosClass: 'Guaranteed' };
        under.seeRaw({ ...bound, metadata: { ...bound.metadata, ...metadata, resourceVersion: '11' }, status });
        assert.deepEqual(under.filter(withUid(podOf('2'), 'victim')).NodeNames, []);
        under.gone(bound);
        assert.deepEqual(under.filter(withUid(podOf('2'), 'victim')).NodeNames, ['n1']);
      });
  }

  it('counts for the CPUs of its containers if it was created unreadable', () => {
    const under = extenderOf({ nodes: { n1: withFree(8) } });
    const { spec } = onNode(podOf('1'));
    const bound = withUid({ ...podOf('1'), spec: { ...spec, containers: Array(60).fill(spec.containers[0]) } }, 'a');
    under.seeRaw({
      ...bound,
      metadata: { ...bound.metadata, resourceVersion: '1' },
      status: { phase: 'Pending', qosClass: 'Guaranteed' },
    });
    assert.deepEqual(under.filter(withUid(podOf('2'), 'victim')).NodeNames, ['n1'], 'the kubelet refuses so many');
    assert.equal(under.state.reservations.size, 2);
  });
});

describe('reservations', () => {
  for (const [what, answers, others] of [
    ['one node in an answer', 1, 0],
    ['many nodes in an answer', 16, 0],
    ['the second call on its way', 16, 1],
  ] as const)
    it(`give the last free CPUs only to the first of two filter calls, with ${what}`, () => {
      const under = extenderOf({ nodes: { n1: withFree(2), n2: withFree(6), n3: withFree(2) }, answers });
      assert.deepEqual([passed(under, 'b', others), passed(under, 'a')], [['n2'], []]);
    });

  it('are at most 10,000 for pods that are not bound; pods on shared CPUs need none', () => {
    const under = extenderOf();
    crowd(under, 10_000, (i) => `team-${i % 20}`);
    assert.throws(() => under.filter(four('a')), /too many pods are in flight; try again/);
    assert.deepEqual(under.filter(podOf('500m')).NodeNames, ['n1']);
    under.state.reservations.withdraw('p0');
    assert.deepEqual(passed(under, 'a'), ['n1']);
    assert.throws(() => under.filter(four('b')), /too many pods/);
    under.clock.now += 10;
    assert.deepEqual(passed(under, 'b'), ['n1'], 'expired reservations do not count');
  });

  it('are at most 1,000 for the unbound pods of one namespace; those of others still get nodes', () => {
    const under = extenderOf();
    crowd(under, 1000, () => 'crowd');
    const inCrowd = withUid(four('a'), 'a', { namespace: 'crowd' });
    assert.throws(() => under.filter(inCrowd), /too many pods of this namespace are in flight/);
    assert.deepEqual(passed(under, 'victim'), ['n1']);
    under.clock.now += 10;
    assert.deepEqual(under.filter(inCrowd).NodeNames, ['n1'], 'expired reservations do not count');
  });

  describe('of a pod that may wait for a volume', () => {
    const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }];
    const NODES = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`n${i}`, withFree(4)]));
    const topologySpreadConstraints = [
      { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' },
    ];
    const waiting = (uid: string, more: object = {}) => ({
      ...four(uid),
      spec: { ...four(uid).spec, volumes, topologySpreadConstraints, ...more },
    });
    const nominate = (under: ExtenderUnderTest, pod: Pod, before?: string) => {
      const [node] = under.filter({ ...pod, status: { nominatedNodeName: before } } as Pod).NodeNames;
      const metadata = { ...pod.metadata, resourceVersion: '11' };
      under.see({ ...pod, metadata }, { phase: 'Pending', nominatedNodeName: node });
    };

    it('are on the node with the highest score, not on the fullest', () => {
      const bare = { physnets: [], tunnel: undefined };
      const fullest = { tunnel: { cells: '0' }, assignments: [{ podUID: 'b', container: 'compute', cpus: '1,9' }] };
      const nodes = { fullest: statusOf({ ...bare, ...fullest }), better: statusOf(bare) };
      assert.deepEqual(passed(extenderOf({ nodes }), 'a'), ['fullest', 'better']);
      assert.deepEqual(extenderOf({ nodes }).filter(waiting('a')).NodeNames, ['better']);
    });

    const CHOICES: readonly [label: string, nominated: (under: ExtenderUnderTest) => void, nodes: number][] = [
      ['the scheduler nominates its choice for such pods', (under) => nominate(under, waiting('first')), 16],
      ['only the node of a preemption was nominated', (under) => nominate(under, waiting('first'), 'n1'), 1],
      ['a node without a reservation was nominated', ({ see }) => see(four('x'), { nominatedNodeName: 'n1' }), 1],
    ];
    for (const [label, nominated, nodes] of CHOICES)
      it(`are on ${nodes} of 20 nodes if ${label}`, () => {
        const under = extenderOf({ nodes: NODES });
        nominated(under);
        assert.equal(under.filter(waiting('slow', { topologySpreadConstraints: [] })).NodeNames.length, nodes);
      });
  });
});
