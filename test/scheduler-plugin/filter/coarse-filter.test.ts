import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Pod } from '../../../kube/resources.ts';
import { LAST_KEY } from '../../../scheduler-plugin/filter/candidate-order.ts';
import { createCoarseFilters, LOOK_CLOSER } from '../../../scheduler-plugin/filter/coarse-filter.ts';
import { RejectedNodeList } from '../../../scheduler-plugin/filter/rejected-nodes.ts';
import { type ExtenderFixture, extenderOf, type FilterReply, podOf, statusOf, withUid } from '../extender-fixture.ts';

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

describe('the cache between calls', () => {
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

  /** Coarse filters of a cluster, and how many were made. */
  function coarseOf(nodes: ExtenderFixture['nodes'], policy: 'refuse' | 'count-check' = 'refuse') {
    const { state, extender } = extenderOf({ ...(nodes && { nodes }), policy });
    const { fleet } = state;
    let fitters = 0;
    const fitter = fleet.coarse.fitter.bind(fleet.coarse);
    fleet.coarse.fitter = (need) => {
      fitters++;
      return fitter(need);
    };
    const coarseFor = createCoarseFilters(fleet, policy);
    const ask = (pod: Pod) => coarseFor(extender.needsOf(pod));
    const code = (pod: Pod, name: string) => ask(pod).codes[fleet.names.find(name)];
    const made = () => {
      const count = fitters;
      fitters = 0;
      return count > 0;
    };
    return { state, ask, code, made };
  }
  const owned = (cpus: string) => [{ podUID: 'x', container: 'c', cpus }];
  const bare = statusOf({ physnets: [] });

  it('encodes the remaining CPUs, the pods in flight and the useful networks of a candidate', () => {
    const { code, state } = coarseOf({ bare, filled: { ...bare, assignments: owned('1-5,9-13') }, nets: statusOf() });
    assert.equal(code(podOf('4'), 'bare'), 10);
    assert.equal(code(podOf('4'), 'filled'), 0);
    assert.equal(code(podOf('4'), 'nets'), 256 + 10);
    state.fleet.setAssumed('bare', 1, 2);
    assert.equal(code(podOf('4'), 'bare'), 512 + 8);
    state.fleet.setAssumed('bare', 0, 0);
    assert.equal(code(podOf('4'), 'bare'), 10);
    const wish = { 'plumbline.dev/placement': JSON.stringify({ preferred: [PHYSNET1] }) };
    const preferring = { ...podOf('4'), metadata: { ...podOf('4').metadata, annotations: wish } };
    assert.equal(code(preferring, 'bare'), 1024 + 10);
    const only = coarseOf({ only: statusOf({ physnets: [{ name: 'physnet1', cells: '1' }] }) });
    assert.equal(only.code(podOf('8', [PHYSNET1]), 'only'), 0);
    assert.equal(only.code(podOf('6', [PHYSNET1]), 'only'), 2);
  });

  it('marks nodes without a current report for a closer look; shared CPUs need no prediction', () => {
    const { code, state, ask } = coarseOf({
      silent: undefined,
      stale: bare,
      shared: statusOf({ cpuManager: { policy: 'none' } }),
    });
    state.setFlag('stale', 'stale', true);
    assert.equal(code(podOf('4'), 'silent'), LOOK_CLOSER);
    assert.equal(code(podOf('4'), 'stale'), LOOK_CLOSER);
    assert.equal(ask(podOf('4')).roomOn(state.fleet.names.find('stale')), 10);
    assert.equal(ask(podOf('4')).roomOn(state.fleet.names.find('silent')), LOOK_CLOSER);
    assert.equal(code(podOf('4'), 'shared'), LAST_KEY);
    state.nodeChanged('shared', { dpuHost: true });
    assert.equal(code(podOf('4'), 'shared'), LAST_KEY, 'a DPU host without other flags needs no closer look');
  });

  it('has one code for each text of a refusal', () => {
    const full = statusOf({ assignments: owned('1-7,9-15') });
    const far = statusOf({ assignments: owned('4-6,12-14') });
    const { ask, state } = coarseOf({ n1: full, n2: full, n3: far, n4: far, n5: bare });
    const coarse = ask(podOf('4', [PHYSNET1]));
    const codes = ['n1', 'n2', 'n3', 'n4', 'n5'].map((name) => coarse.codes[state.fleet.names.find(name)]!);
    assert.deepEqual(codes, [-2, -2, -3, -3, -4]);
    assert.deepEqual(
      [-2, -3, -4].map((one) => coarse.refusalOf(one).text),
      [
        'too few free whole cores',
        'no room on the NUMA nodes of a required network',
        'physnet physnet1 is not on the node',
      ],
    );
    ask(podOf('4', [PHYSNET1]));
    state.reportChanged('n1', statusOf({ ...full, physnets: [] }));
    state.reportChanged('n2', full);
    assert.deepEqual(
      ['n1', 'n2'].map((name) => ask(podOf('4', [PHYSNET1])).codes[state.fleet.names.find(name)]),
      [-4, -2],
    );
  });

  it('keeps the codes of all nodes while nodes are added', () => {
    const { code, state } = coarseOf({ n0: bare });
    assert.equal(code(podOf('4'), 'n0'), 10);
    for (let i = 1; i < 600; i++) {
      state.reportChanged(`n${i}`, { ...bare, assignments: owned(i % 2 === 0 ? '1,9' : '1-2,9-10') });
      if (i % 7 === 0 || i < 4) assert.equal(code(podOf('4'), `n${i}`), i % 2 === 0 ? 8 : 6);
    }
    for (let i = 1; i < 600; i++) assert.equal(code(podOf('4'), `n${i}`), i % 2 === 0 ? 8 : 6, `n${i}`);
    assert.equal(code(podOf('4'), 'n0'), 10);
  });

  it('is built once for each of sixteen kinds of pods; with more, the oldest is built again', () => {
    const { ask, made } = coarseOf({ n1: statusOf() });
    const kind = (i: number) => podOf('2', [`physnet.plumbline.dev/net${i}`]);
    for (let i = 0; i < 16; i++) ask(kind(i));
    assert.equal(made(), true);
    for (let i = 0; i < 16; i++) ask(kind(i));
    assert.equal(made(), false);
    ask(kind(16));
    assert.equal(made(), true);
    ask(kind(1));
    assert.equal(made(), false);
    ask(kind(0));
    assert.equal(made(), true);
  });

  it('keeps its capacity for many names from one call to the next', () => {
    const list = new RejectedNodeList();
    const { positions } = list;
    list.begin(positions.length);
    assert.equal(list.positions, positions);
    list.begin(positions.length + 1);
    assert.ok(list.positions.length > positions.length && list.texts.length === list.positions.length);
  });
});
