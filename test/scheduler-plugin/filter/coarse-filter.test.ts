import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createCoarseFilters, LOOK_CLOSER } from '../../../scheduler-plugin/filter/coarse-filter.ts';
import { RejectedNodeList } from '../../../scheduler-plugin/filter/rejected-nodes.ts';
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

describe('what is kept between calls', () => {
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

  it('refuses full nodes without a prediction, with the reason', () => {
    const { state, extender } = extenderOf({ nodes: { full: STATUSES[2], free: statusOf() } });
    const coarse = createCoarseFilters(state.fleet, 'refuse')(extender.needsOf(PODS[0]!));
    const [full, free] = ['full', 'free'].map((name) => coarse.codes[state.fleet.names.find(name)]!);
    assert.ok(free! >= 0, `a candidate: ${free}`);
    assert.ok(full! < LOOK_CLOSER, `refused: ${full}`);
    assert.equal(coarse.refusalOf(full!).text, 'too few free whole cores');
  });

  it('keeps the room for many names from one call to the next', () => {
    const list = new RejectedNodeList();
    const { positions } = list;
    list.begin(positions.length);
    assert.equal(list.positions, positions);
    list.begin(positions.length + 1);
    assert.ok(list.positions.length > positions.length && list.texts.length === list.positions.length);
  });
});
