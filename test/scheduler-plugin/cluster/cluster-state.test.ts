import assert from 'node:assert/strict';
import { PLACED_RESOURCE } from '../../../model/names.ts';
import { RefusedStartsByNode } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { extenderOf, onNode, owned, podOf, statusOf, unschedulable, viewOf, withUid } from '../extender-fixture.ts';

const UNSCHEDULABLE = unschedulable('0/3 nodes are available: 3 too few free CPUs.');
const VF = 'example.com/vf';
/** The notifications of these changes, except improvements. */
const heard = (act: (under: ReturnType<typeof extenderOf>) => void) => {
  const under = extenderOf();
  under.notified.length = 0;
  act(under);
  return under.notified.filter((line) => !line.startsWith('improved'));
};
const DELETING = { deletionTimestamp: '2026-11-01T10:00:00Z' };
describe('pod notifications to the controllers', () => {
  const pod = withUid(podOf('4'), 'a');
  const asked = withUid(podOf('4', [PLACED_RESOURCE]), 'a');

  const CASES: readonly [string, (under: ReturnType<typeof extenderOf>) => void, readonly string[]][] = [
    ['a pod without a node that an extender is asked about', ({ see }) => see(asked, UNSCHEDULABLE), ['waiting a']],
    ['a pod without a node that no extender is asked about', ({ see }) => see(pod, UNSCHEDULABLE), []],
    ['a bound pod that is about to start', ({ see }) => see(onNode(pod, 'n1')), ['settled a', 'starting a']],
    [
      'a pod that its kubelet rejects where it was predicted to fit, seen twice',
      ({ filter, see }) => {
        filter(pod);
        see(onNode(pod, 'n1'));
        for (let i = 0; i < 2; i++) see(onNode(pod, 'n1'), { phase: 'Failed', reason: 'SMTAlignmentError' });
      },
      ['settled a', 'starting a', 'reservationEnded a terminal', 'rejected a', 'settled a', 'settled a'],
    ],
    [
      'a pod that its kubelet rejects where it was not predicted: it names its node itself',
      ({ see }) => {
        see(onNode(pod, 'n1'));
        see(onNode(pod, 'n1'), { phase: 'Failed', reason: 'SMTAlignmentError' });
      },
      ['settled a', 'starting a', 'reservationEnded a terminal', 'settled a'],
    ],
    [
      'a deleted pod',
      ({ see, gone }) => {
        see(onNode(pod, 'n1'));
        gone(pod);
      },
      ['settled a', 'starting a', 'reservationEnded a deleted', 'settled a'],
    ],
  ];
  for (const [name, act, expected] of CASES) it(name, () => assert.deepEqual(heard(act), expected));

  it('a node improves when a flag is removed, not when it is set', () => {
    const { state, notified } = extenderOf({ nodes: { n1: statusOf() } });
    notified.length = 0;
    state.setFlag('n1', 'draCpu', true);
    assert.deepEqual(notified, []);
    state.setFlag('n1', 'draCpu', false);
    assert.deepEqual(notified, ['improved n1']);
    notified.length = 0;
    state.setFlag('n1', 'stale', true);
    state.setFlag('n1', 'stale', false);
    assert.deepEqual(notified, ['nodeFacts n1', 'nodeFacts n1', 'improved n1'], 'also for the condition AgentReady');
  });

  it('a pod that is bound was seen without a node before', () => {
    const { state, notified } = extenderOf({ nodes: { n1: statusOf() } });
    const [waiting, bound] = [viewOf(pod), viewOf(onNode(pod, 'n1'))];
    for (const before of [undefined, waiting, bound]) state.podChanged(before, bound, before !== undefined);
    assert.equal(notified.filter((line) => line.startsWith('bound')).length, 1);
  });

  it('the initial list reports no rejections: a pod that was refused earlier does not count', () => {
    const refused = viewOf(onNode(pod, 'n1'), { phase: 'Failed', reason: 'SMTAlignmentError' });
    const rejectionsOf = (synced: boolean) => {
      const { state, notified, filter } = extenderOf();
      filter(pod);
      notified.length = 0;
      state.podChanged(undefined, refused, synced);
      return notified.filter((line) => line.startsWith('rejected'));
    };
    assert.deepEqual([rejectionsOf(false), rejectionsOf(true)], [[], ['rejected a']]);
  });

  it('a new pod with the same name ends the reservation of the old one', () => {
    const { state, notified } = extenderOf();
    const [first, second] = ['a', 'b'].map((uid) => viewOf(onNode(withUid(podOf('4'), uid), 'n1')));
    state.podChanged(undefined, first, true);
    notified.length = 0;
    state.podChanged(first, second, true);
    const notices = notified.filter((line) => !line.startsWith('improved'));
    assert.deepEqual(notices, ['reservationEnded a deleted', 'settled a', 'settled b', 'starting b']);
    const starting = state.startingOn('n1').map(({ uid }) => uid);
    assert.deepEqual([starting, state.reservations.assumedOn('n1').length], [['b'], 1]);
  });

  it('starting pods are listed for their node until they have started or are deleted', () => {
    const { state, see, gone } = extenderOf();
    const starting = () => state.startingOn('n1').map(({ uid }) => uid);
    const pods = ['a', 'b', 'c', 'd'].map((uid) => onNode(withUid(podOf('2'), uid), 'n1'));
    for (const pod of pods) see(pod);
    see(onNode(withUid(podOf('2'), 'e'), 'n2'));
    assert.deepEqual([starting().join(''), state.startingOn('n2').length, state.startingOn('n3')], ['abcd', 1, []]);
    see(pods[0]!, { phase: 'Running' });
    see(withUid(pods[1]!, 'b', DELETING));
    gone(pods[2]!);
    assert.deepEqual(starting(), ['d']);
    see(pods[3]!);
    assert.deepEqual(starting(), ['d']);
  });
});
describe('node notifications to the controllers', () => {
  it('are sent as an improvement when a report arrives and when the Node changes', () => {
    const { state, notified } = extenderOf();
    const sent = ['nodeFacts n1', 'improved n1'];
    notified.length = 0;
    state.reportChanged('n1', statusOf());
    assert.deepEqual(notified.splice(0), sent);
    state.nodeChanged('n1', { dpuHost: true });
    assert.deepEqual(notified, sent);
  });

  it('are sent when a report is quarantined, once for each reason, and when the quarantine ends', () => {
    const { state, notified } = extenderOf({ nodes: { n1: statusOf() } });
    const quarantined = () => notified.splice(0).filter((line) => line.startsWith('quarantined')).length;
    quarantined();
    // A Node that arrives after its report is compared with it, too.
    state.nodeChanged('n1', { dpuHost: false, cpus: 8 });
    assert.deepEqual([quarantined(), state.faults.get('n1')?.code], [1, 'more-cpus']);
    state.reportChanged('n1', undefined, new Error('not a report'));
    assert.deepEqual([quarantined(), state.faults.get('n1')?.code], [1, 'contradiction']);
    state.reportChanged('n1', undefined);
    assert.deepEqual([quarantined(), state.faults.size], [1, 0]);
    state.reportChanged('n1', statusOf({ devices: [{ resource: VF, groups: [{ cells: '0', total: 8, free: 8 }] }] }));
    const faults = [4, 8, 0].map((count) => {
      state.nodeChanged('n1', { dpuHost: false, cpus: 16, capacity: new Map([[VF, count]]) });
      return state.faults.get('n1')?.code;
    });
    assert.deepEqual(faults, ['more-devices', undefined, undefined], '0 while its kubelet restarts');
    // The facts from a Node are forgotten with it.
    state.nodeChanged('n1', { dpuHost: false, cpus: 4 });
    state.nodeChanged('n1', undefined);
    quarantined();
    state.reportChanged('n1', statusOf());
    assert.deepEqual([quarantined(), state.faults.size], [0, 0]);
  });

  it('a report that names a pod of another node frees no CPUs there', () => {
    const { state, filter, see } = extenderOf({ nodes: { n1: statusOf(), liar: statusOf() } });
    see(onNode(withUid(podOf('14'), 'first'), 'n1'));
    state.reportChanged('liar', statusOf({ assignments: [owned('first', '2-3')] }));
    assert.deepEqual(filter(withUid(podOf('4'), 'second'), ['n1']).NodeNames, [], 'its CPUs are still reserved');
  });

  it('a node improves when a reservation on it ends, not when one begins', () => {
    const { state, notified, filter, see } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    notified.length = 0;
    filter(withUid(podOf('4'), 'a'));
    const nodes = () => ['n1', 'n2'].map((name) => state.fleet.get(name));
    const assumed = () => nodes().map((node) => [node?.reservations, node?.reservedCpus].join());
    assert.deepEqual([notified, assumed()], [[], ['1,4', '1,4']]);
    see(onNode(withUid(podOf('4'), 'a'), 'n1'));
    assert.ok(notified.includes('improved n2'));
    assert.deepEqual(assumed(), ['1,4', '0,0']);
  });
});

const refusal = (podName: string, podUID?: string, message = 'no') => ({
  namespace: 'team',
  podName,
  container: 'compute',
  message,
  ...(podUID === undefined ? {} : { podUID }),
});
const pod = (name: string, uid: string, namespace = 'team') => ({ name, uid, namespace });
describe('pods whose start the agent of a node refused', () => {
  it('are those in the newest report, by name, and by uid if the agent knows it', () => {
    const starts = new RefusedStartsByNode();
    starts.reported('n1', [refusal('a', 'uid-a', 'first'), refusal('b')]);
    assert.equal(starts.of('n1', pod('a', 'uid-a')), 'first');
    assert.equal(starts.of('n1', pod('a', 'another')), undefined);
    assert.equal(starts.of('n1', pod('b', 'any')), 'no');
    assert.equal(starts.of('n1', pod('a', 'uid-a', 'other')), undefined);
    assert.equal(starts.of('n2', pod('a', 'uid-a')), undefined);
    starts.reported('n1', [refusal('c')]);
    assert.deepEqual([starts.of('n1', pod('a', 'uid-a')), starts.of('n1', pod('c', 'c'))], [undefined, 'no']);
    starts.reported('n1', []);
    assert.equal(starts.of('n1', pod('c', 'c')), undefined);
  });

  it('are the only pods considered for eviction when the report arrives, once each', () => {
    const { state, see, notified } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    for (const uid of ['a', 'b', 'c']) see(onNode(withUid(podOf('2'), uid), uid === 'c' ? 'n2' : 'n1'));
    const starting = () => notified.splice(0).filter((line) => line.startsWith('starting'));
    starting();
    const refused = (podName: string, podUID: string) => ({ ...refusal(podName, podUID), namespace: 'default' });
    const report = (...refusals: ReturnType<typeof refused>[]) => {
      state.reportChanged('n1', statusOf({ refusals }));
      return starting();
    };
    assert.deepEqual(report(refused('a', 'a'), refused('b', 'another'), refused('c', 'c')), ['starting a']);
    assert.deepEqual(report(refused('a', 'a')), []);
    assert.deepEqual(report(), []);
    assert.deepEqual(report(refused('b', 'b')), ['starting b']);
    // The refusals in an impossible report do not count either.
    state.reportChanged('n1', statusOf({ cores: ['0'], refusals: [refused('a', 'a')] }));
    assert.deepEqual(starting(), []);
    assert.equal(state.hostRefusals.of('n1', pod('a', 'a', 'default')), undefined);
  });

  it('exclude their node for such pods for 30 s, not again while they stay in the report', () => {
    const { state, see, filter, clock } = extenderOf();
    see(onNode(withUid(podOf('4'), 'vm')));
    const refused = () => {
      state.reportChanged('n1', statusOf({ refusals: [{ ...refusal('vm', 'vm'), namespace: 'default' }] }));
      return filter(withUid(podOf('4'), 'again')).FailedAndUnresolvableNodes['n1'];
    };
    assert.match(refused() ?? '', /agent has refused/);
    clock.now += 30;
    assert.equal(refused(), undefined);
  });
});
