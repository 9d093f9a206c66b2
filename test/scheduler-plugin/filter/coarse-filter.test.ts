import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Pod } from '../../../kube/resources.ts';
import { type Candidate, CoarseFilter, compareCandidates } from '../../../scheduler-plugin/filter/coarse-filter.ts';
import { extenderOf, type FilterReply, podOf, statusOf, withUid } from '../extender-fixture.ts';

const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const NAMES = ['n0', 'n1', 'n2', 'n3'];
const PODS = [
  podOf('4'),
  podOf('8', [PHYSNET1]),
  podOf('3'),
  podOf('6', ['physnet.plumbline.dev/elsewhere']),
  podOf('500m'),
];
const STATUSES = [
  statusOf(),
  statusOf({ assignments: [{ podUID: 'x', container: 'c', cpus: '4-6,12-14' }] }),
  statusOf({ assignments: [{ podUID: 'x', container: 'c', cpus: '1-7,9-15' }] }),
  statusOf({ cpuManager: { policy: 'static' } }),
  statusOf({ physnets: [{ name: 'elsewhere', cells: '0-1' }] }),
  undefined,
];

const node = fc.nat(NAMES.length - 1);
const change = fc.oneof(
  fc.record({ kind: fc.constant('report' as const), node, status: fc.nat(STATUSES.length - 1) }),
  fc.record({
    kind: fc.constant('flag' as const),
    node,
    flag: fc.constantFrom('stale', 'draCpu'),
    value: fc.boolean(),
  }),
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
  if (one.kind === 'bind') see({ ...pod, spec: { ...pod.spec, nodeName: name } });
  if (one.kind === 'gone') gone(pod);
}

describe('an extender after any changes', () => {
  it('answers like a new extender on the same cluster', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const nodes = Object.fromEntries(NAMES.map((name) => [name, statusOf()]));
        const old = extenderOf({ nodes, policy: 'count-check' });
        for (const one of changes) apply(old, one);
        const fresh = extenderOf({ nodes, policy: 'count-check' });
        for (const one of changes) if (one.kind !== 'ask') apply(fresh, one);
        for (const pod of PODS) {
          const ask = ({ filter }: Under): FilterReply => filter(withUid(pod, 'asked'), NAMES);
          assert.deepEqual(ask(old), ask(fresh));
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('the coarse filter', () => {
  const bare = statusOf({ physnets: [] });
  const preferring: Pod = {
    ...podOf('4'),
    metadata: {
      ...podOf('4').metadata,
      annotations: { 'plumbline.dev/placement': JSON.stringify({ preferred: [PHYSNET1] }) },
    },
  };
  /** The result for a node with this report. */
  const check = (pod: Pod, status: NodeTopologyStatus, reservedCpus = 0) => {
    const { state, extender } = extenderOf({ nodes: { n1: status } });
    state.fleet.setReservations('n1', reservedCpus > 0 ? 1 : 0, reservedCpus);
    const node = state.fleet.get('n1')!;
    const result = new CoarseFilter(extender.needsOf(pod), 'refuse').check(node, node.shape!);
    if (result === undefined) return 'shares';
    if ('fits' in result) return result.text;
    const { left, lacksPreferred, wastesNetworks } = result;
    return [left, lacksPreferred && 'lacks', wastesNetworks && 'wastes'].filter((one) => one !== false).join(' ');
  };

  const CASES: readonly [what: string, pod: Pod, status: NodeTopologyStatus, expected: string, reserved?: number][] = [
    ['networks that the pod does not need', podOf('4'), statusOf(), '10 wastes'],
    ['CPUs of pods in flight', podOf('4'), bare, '8', 2],
    ['a preferred network that the node lacks', preferring, bare, '10 lacks'],
  ];
  for (const [what, pod, status, expected, reserved] of CASES) {
    it(`${what}: ${expected}`, () => assert.equal(check(pod, status, reserved), expected));
  }
});

describe('the order of candidates', () => {
  const { state } = extenderOf({ nodes: { n1: statusOf() } });
  const node = state.fleet.get('n1')!;
  const first: Candidate = { node, hasReservations: false, lacksPreferred: false, wastesNetworks: false, left: 0 };
  const ORDER: readonly [what: string, Candidate][] = [
    ['a node that the pod fills', first],
    ['more CPUs left', { ...first, left: 300 }],
    ['networks that the pod does not need', { ...first, wastesNetworks: true }],
    ['these, and more CPUs left', { ...first, wastesNetworks: true, left: 1 }],
    ['pods in flight', { ...first, hasReservations: true }],
    ['a preferred network that the node lacks', { ...first, lacksPreferred: true }],
    ['all of these', { node, hasReservations: true, lacksPreferred: true, wastesNetworks: true, left: 1000 }],
  ];
  it('is by preferred networks, pods in flight, other networks, and remaining CPUs', () => {
    const sorted = ORDER.toReversed().sort(([, a], [, b]) => compareCandidates(a, b));
    assert.deepEqual(
      sorted.map(([what]) => what),
      ORDER.map(([what]) => what),
    );
  });
});
