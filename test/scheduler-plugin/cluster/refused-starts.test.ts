import assert from 'node:assert/strict';
import { RefusedStartsByNode } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { extenderOf, onNode, podOf, statusOf, withUid } from '../extender-fixture.ts';

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
    for (const [uid, nodeName] of [
      ['a', 'n1'],
      ['b', 'n1'],
      ['c', 'n2'],
    ] as const) {
      see(onNode(withUid(podOf('2'), uid), nodeName));
    }
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
    const { state, see, filter, clock } = extenderOf({ nodes: { n1: statusOf() } });
    see(onNode(withUid(podOf('4'), 'vm')), { phase: 'Pending' });
    const report = () =>
      state.reportChanged('n1', statusOf({ refusals: [{ ...refusal('vm', 'vm'), namespace: 'default' }] }));
    report();
    const again = withUid(podOf('4'), 'again');
    assert.match(filter(again).FailedAndUnresolvableNodes['n1'] ?? '', /agent has refused/);
    clock.now += 30;
    report();
    assert.deepEqual(filter(again).NodeNames, ['n1']);
  });
});
