import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Pod } from '../../../kube/resources.ts';
import { extenderOf, type FilterReply, onNode, podOf, statusOf, withUid } from '../extender-fixture.ts';

const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const NAMES = ['n0', 'n1', 'n2', 'n3'];
const PODS = ['4', '3', '500m'].map((cpu) => podOf(cpu));
PODS.push(podOf('8', [PHYSNET1]), podOf('6', ['physnet.plumbline.dev/elsewhere']));
const STATUSES = [
  statusOf(),
  statusOf({ assignments: [{ podUID: 'x', container: 'c', cpus: '4-6,12-14' }] }),
  statusOf({ assignments: [{ podUID: 'x', container: 'c', cpus: '1-7,9-15' }] }),
  statusOf({ cpuManager: { policy: 'static' } }),
  statusOf({ physnets: [{ name: 'elsewhere', cells: '0-1' }] }),
  undefined,
];
const node = fc.nat(NAMES.length - 1);
const flag = fc.constantFrom('stale', 'draCpu');
const change = fc.oneof(
  fc.record({ kind: fc.constant('report' as const), node, status: fc.nat(STATUSES.length - 1) }),
  fc.record({ kind: fc.constant('flag' as const), node, flag, value: fc.boolean() }),
  fc.record({ kind: fc.constant('bind' as const), node, pod: fc.nat(5) }),
  fc.record({ kind: fc.constant('gone' as const), pod: fc.nat(5) }),
  fc.record({ kind: fc.constant('node' as const), node, there: fc.boolean() }),
  fc.record({ kind: fc.constant('ask' as const), pod: fc.nat(PODS.length - 1) }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
type Under = ReturnType<typeof extenderOf>;
function apply({ state, see, gone, filter }: Under, one: Change): void {
  const name = 'node' in one ? NAMES[one.node]! : '';
  if (one.kind === 'report') state.reportChanged(name, STATUSES[one.status]);
  if (one.kind === 'flag') state.setFlag(name, one.flag as 'stale', one.value);
  if (one.kind === 'node') state.nodeChanged(name, one.there ? { dpuHost: false } : undefined);
  if (one.kind === 'ask') filter(withUid(PODS[one.pod]!, 'asked'), NAMES);
  const pod = withUid(podOf('4'), `pod-${'pod' in one ? one.pod : 0}`);
  if (one.kind === 'bind') see(onNode(pod, name));
  if (one.kind === 'gone') gone(pod);
}
describe('an extender after any changes', () => {
  it('answers like a new extender on the same cluster', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const nodes = Object.fromEntries(NAMES.map((name) => [name, statusOf()]));
        const old = extenderOf({ nodes, policy: 'count-check' });
        for (const change of changes) apply(old, change);
        const fresh = extenderOf({ nodes, policy: 'count-check' });
        for (const change of changes) if (change.kind !== 'ask') apply(fresh, change);
        for (const pod of PODS) {
          const ask = ({ filter }: Under): FilterReply => filter(withUid(pod, 'asked'), NAMES);
          assert.deepEqual(ask(old), ask(fresh));
        }
      }),
      { numRuns: 100 },
    );
  });
});
describe('the order of candidates', () => {
  const bare = { physnets: [] };
  const fuller = { assignments: [{ podUID: 'x', container: 'c', cpus: '1,9' }] };
  const preferring = withUid(podOf('4'), 'asked', {
    annotations: { 'plumbline.dev/placement': JSON.stringify({ preferred: [PHYSNET1] }) },
  });
  interface Node {
    readonly report: Partial<NodeTopologyStatus>;
    readonly inFlight?: boolean;
  }
  /** Each criterion counts more than those of the rows before. */
  const ORDER: readonly [label: string, better: Node, worse: Node, pod?: Pod][] = [
    ['the fuller one', { report: { ...bare, ...fuller } }, { report: bare }],
    ['the one without networks that the pod does not need', { report: bare }, { report: fuller }],
    ['the one without pods in flight', { report: {} }, { report: { ...bare, ...fuller }, inFlight: true }],
    ['the one with a preferred network', { report: {}, inFlight: true }, { report: bare }, preferring],
  ];
  for (const [label, better, worse, pod = podOf('4')] of ORDER)
    it(`begins with ${label}`, () => {
      // More of the others than are predicted for one answer.
      const names = [...Array.from({ length: 40 }, (_, i) => `n${i}`), 'better'];
      const nodes = names.map((name) => [name, statusOf((name === 'better' ? better : worse).report)]);
      const { state, filter } = extenderOf({ nodes: Object.fromEntries(nodes), answers: 1 });
      for (const name of names)
        if ((name === 'better' ? better : worse).inFlight) state.fleet.setReservations(name, 1, 2);
      assert.deepEqual(filter(pod).NodeNames, ['better']);
    });
});

const ZONE = 'topology.kubernetes.io/zone';
const term = (topologyKey: string) => ({ weight: 100, podAffinityTerm: { topologyKey, labelSelector: {} } });
const preferred = (...terms: object[]) => ({ preferredDuringSchedulingIgnoredDuringExecution: terms });
const full = statusOf({ assignments: [{ podUID: 'x', container: 'c', cpus: '1-7,9-15' }] });
/** Nodes a0, a1, …: the zone is the first letter. CPUs are scarce, so one node is returned while other pods wait. */
function cluster(zones: readonly string[], nodes: number, status = (_: string) => statusOf()) {
  const names = zones.flatMap((zone) => Array.from({ length: nodes }, (_, i) => `${zone}${i}`));
  const under = extenderOf({ nodes: Object.fromEntries(names.map((name) => [name, status(name)])) });
  for (const name of names) under.state.nodeChanged(name, { dpuHost: false, labels: new Map([[ZONE, name[0]!]]) });
  const ask = (uid: string, spec: object, cpu = '4') => {
    const pod = withUid(podOf(cpu), uid);
    return under.filter({ ...pod, spec: { ...pod.spec, ...spec } } as Pod, names, 20).NodeNames;
  };
  return { ...under, names, ask };
}
const ANTI = { affinity: { podAntiAffinity: preferred(term(ZONE)) } };
const zonesOf = (nodes: readonly string[]) => [...new Set(nodes.map((name) => name[0]))].sort().join('');
describe('soft constraints while other pods are in flight', () => {
  for (const [name, spec, zones] of [
    ['no constraint', {}, 1],
    ['preferred pod anti-affinity', ANTI, 3],
  ] as const)
    it(`${name}: nodes of ${zones} of three zones are returned, one of each`, () => {
      const answered = cluster(['a', 'b', 'c'], 4).ask('p', spec);
      assert.deepEqual([zonesOf(answered).length, answered.length], [zones, zones]);
    });

  it('a zone without room is skipped, and the search in it is limited', () => {
    const { ask } = cluster(['a', 'b', 'c'], 12, (name) => (name.startsWith('b') ? full : statusOf()));
    assert.equal(zonesOf(ask('p', ANTI)), 'ac');
  });

  it('nodes of at most 16 domains of a key are returned', () => {
    const zones = [...'abcdefghijklmnopqrstuvwxyz'];
    assert.equal(cluster(zones, 1).ask('p', ANTI).length, 16);
  });

  it('four nodes are returned for a key with unknown domains, such as the host name', () => {
    const byHost = { affinity: { podAntiAffinity: preferred(term('kubernetes.io/hostname')) } };
    assert.equal(cluster(['a', 'b', 'c'], 4).ask('p', byHost).length, 4);
  });

  it('a moved node counts in its new zone, and a deleted node does not count', () => {
    const { ask, state } = cluster(['a', 'b'], 1);
    assert.equal(ask('p', ANTI).length, 2);
    state.nodeChanged('b0', { dpuHost: false, labels: new Map([[ZONE, 'a']]) });
    assert.equal(ask('p', ANTI).length, 1);
    state.nodeChanged('b0', undefined);
    state.reportChanged('b0', undefined);
    assert.equal(ask('p', ANTI).length, 1);
  });
});
