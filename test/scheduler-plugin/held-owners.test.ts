import assert from 'node:assert/strict';
import type { EventText } from '../../kube/events.ts';
import { createHeldOwners } from '../../scheduler-plugin/cluster/held-owners.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../scheduler-plugin/cluster/pod-view.ts';
import { silent } from '../support/logger.ts';
import { extenderOf, podOf, withUid } from './extender-fixture.ts';

const owned = (uid: string) =>
  withUid(podOf('4'), uid, {
    ownerReferences: [
      { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm-a', uid: 'vmi', controller: true },
    ],
  });

describe('owners whose pods kubelets refuse in a burst', () => {
  const setUp = () => {
    const under = extenderOf();
    const events: [string, EventText][] = [];
    const heldOwners = createHeldOwners({
      breaker: under.state.breaker,
      events: { record: ({ name }, event) => void events.push([name, event]) },
      active: () => true,
      onFree: () => undefined,
      log: silent,
      now: () => under.clock.now,
    });
    const reject = (uid: string) => {
      const pod = { ...owned(uid), spec: { ...owned(uid).spec, nodeName: 'n1' } };
      const status = { phase: 'Failed', reason: 'SMTAlignmentError' };
      heldOwners.rejected(podViewOf(observedPod.parse({ ...pod, status }), createNeedsReader('all'))!);
    };
    return { ...under, events, reject };
  };

  it('have their next pods held back within a few failures, which an Event says', () => {
    const { reject, events, filter, clock } = setUp();
    reject('a');
    reject('b');
    assert.deepEqual(filter(owned('c')).NodeNames, ['n1']);
    reject('c');
    const { NodeNames, FailedAndUnresolvableNodes } = filter(owned('d'));
    assert.deepEqual(NodeNames, []);
    assert.match(
      FailedAndUnresolvableNodes['n1'] ?? '',
      /held back: kubelets have refused .* VirtualMachineInstance vm-a/,
    );
    assert.deepEqual(
      events.map(([name, { reason }]) => [name, reason]),
      [['vm-a', 'PlacementHeldBack']],
    );
    assert.match(events[0]![1].message, /SMTAlignmentError.*no more are placed for 30 s/);
    clock.now += 31;
    assert.deepEqual(filter(owned('e')).NodeNames, ['n1']);
  });

  it('do not stand in the way of others', () => {
    const { reject, filter } = setUp();
    for (const uid of ['a', 'b', 'c']) reject(uid);
    assert.deepEqual(filter(withUid(podOf('4'), 'other')).NodeNames, ['n1']);
  });
});
