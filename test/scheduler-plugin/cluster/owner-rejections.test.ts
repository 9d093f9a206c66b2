import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { EventText } from '../../../kube/events.ts';
import type { Pod } from '../../../kube/resources.ts';
import { createOwnerRejections } from '../../../scheduler-plugin/cluster/owner-rejections.ts';
import { createNeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { silent } from '../../support/logger.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

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
    const freed: number[] = [];
    const replica = { active: true };
    const heldOwners = createOwnerRejections({
      ownerBackoff: under.state.ownerBackoff,
      owners: under.state.owners,
      events: { record: ({ name }, event) => void events.push([name, event]) },
      active: () => replica.active,
      onFree: () => void freed.push(under.clock.now),
      log: silent,
      now: () => under.clock.now,
    });
    const rejected = (one: Pod) => {
      const pod = { ...one, spec: { ...one.spec, nodeName: 'n1' } };
      const status = { phase: 'Failed', reason: 'SMTAlignmentError' };
      heldOwners.rejected(podViewOf(observedPod.parse({ ...pod, status }), createNeedsReader('all'))!);
    };
    const reject = (uid: string) => rejected(owned(uid));
    return { ...under, events, reject, rejected, freed, replica };
  };

  it('have their next pods held back after a few failures, with an Event', () => {
    const { reject, events, filter, clock } = setUp();
    reject('a');
    reject('b');
    assert.deepEqual(filter(owned('c')).NodeNames, ['n1']);
    reject('c');
    const { NodeNames, FailedAndUnresolvableNodes } = filter(owned('d'));
    assert.deepEqual(NodeNames, []);
    assert.match(FailedAndUnresolvableNodes['n1'] ?? '', /delayed: kubelets refused .* VirtualMachineInstance vm-a/);
    assert.deepEqual(
      events.map(([name, { reason }]) => [name, reason]),
      [['vm-a', 'PlacementHeldBack']],
    );
    assert.match(events[0]![1].message, /SMTAlignmentError.*places no pods of this owner for 30 s/);
    clock.now += 31;
    assert.deepEqual(filter(owned('e')).NodeNames, ['n1']);
  });

  it('have their waiting pods rechecked shortly after the hold ends, not before', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const { reject, freed } = setUp();
      for (const uid of ['a', 'b', 'c']) reject(uid);
      mock.timers.tick(30_000);
      assert.equal(freed.length, 0);
      mock.timers.tick(100);
      assert.equal(freed.length, 1);
    } finally {
      mock.timers.reset();
    }
  });

  it('are not known for a pod without a controller: nothing recreates it', () => {
    const { rejected, events, filter } = setUp();
    for (const uid of ['a', 'b', 'c', 'd']) rejected(withUid(podOf('4'), uid));
    assert.deepEqual([events, filter(withUid(podOf('4'), 'e')).NodeNames], [[], ['n1']]);
  });

  it('are known for a pod without a namespace, too', () => {
    const { rejected, filter } = setUp();
    const nowhere = (uid: string) =>
      ({ ...owned(uid), metadata: { ...owned(uid).metadata, namespace: undefined } }) as Pod;
    for (const uid of ['a', 'b', 'c']) rejected(nowhere(uid));
    assert.deepEqual(filter(nowhere('d')).NodeNames, []);
    assert.deepEqual(filter(owned('d')).NodeNames, ['n1']);
  });

  it('have no node rechecked that the scheduler did not offer while they are held back', () => {
    const { reject, filter, notified, state } = setUp();
    state.nodeChanged('far', { dpuHost: false });
    state.reportChanged('far', statusOf());
    const missed = (pod: Pod) => {
      notified.length = 0;
      filter(pod, ['gone']);
      return notified.filter((line) => line.startsWith('neverOffered')).length;
    };
    assert.equal(missed(owned('x')), 1);
    for (const uid of ['a', 'b', 'c']) reject(uid);
    assert.equal(missed(owned('y')), 0);
  });

  it('are held back by each replica, and only the active one records the Event', () => {
    const { reject, events, filter, replica } = setUp();
    replica.active = false;
    for (const uid of ['a', 'b', 'c']) reject(uid);
    assert.deepEqual([events, filter(owned('d')).NodeNames], [[], []]);
  });

  it('do not block the pods of other owners', () => {
    const { reject, filter } = setUp();
    for (const uid of ['a', 'b', 'c']) reject(uid);
    assert.deepEqual(filter(withUid(podOf('4'), 'other')).NodeNames, ['n1']);
  });
});

describe('VMs whose launchers kubelets refuse in a burst', () => {
  const KIND = 'VirtualMachineInstance';
  const machine = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm-a', uid: 'vm-uid' };
  const set = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceReplicaSet', name: 'web', uid: 'rs-uid' };

  /** A launcher as KubeVirt creates it: its only owner reference is the VMI. */
  const launcher = (vmi: string, uid: string, namespace = 'default'): Pod => ({
    ...podOf('4', ['devices.kubevirt.io/kvm']),
    metadata: {
      name: `virt-launcher-${vmi}-${uid}`,
      namespace,
      uid: `pod-of-${uid}`,
      labels: { 'kubevirt.io': 'virt-launcher', 'vm.kubevirt.io/name': vmi, 'kubevirt.io/created-by': uid },
      ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: KIND, name: vmi, uid, controller: true }],
    },
  });

  const setUp = () => {
    const under = extenderOf();
    const events: string[] = [];
    const { ownerBackoff: breaker, owners } = under.state;
    const heldOwners = createOwnerRejections({
      ownerBackoff: breaker,
      owners,
      events: { record: ({ kind, name, uid }, { reason }) => void events.push(`${reason} ${kind} ${name} ${uid}`) },
      active: () => true,
      onFree: () => undefined,
      log: silent,
      now: () => under.clock.now,
    });
    const reader = createNeedsReader('all');
    /** Asks for a node; a launcher that gets one is refused there, and KubeVirt replaces its VMI. */
    const start = (pod: Pod): boolean => {
      if (under.filter(pod).NodeNames.length === 0) return false;
      const status = { phase: 'Failed', reason: 'SMTAlignmentError' };
      heldOwners.rejected(
        podViewOf(observedPod.parse({ ...pod, spec: { ...pod.spec, nodeName: 'n1' }, status }), reader)!,
      );
      under.see(pod);
      under.gone(pod);
      return true;
    };
    return { ...under, owners, events, start };
  };

  it('a replica set of one with 97 launchers in 40 s gets no node for the fourth, and the Event is on the replica set', () => {
    const { owners, events, start, clock } = setUp();
    let started = 0;
    for (let i = 0; i < 97; i++) {
      // Each VMI has a new name and uid, and is deleted when its successor starts.
      owners.learn('default', `vmi-${i}`, set);
      if (start(launcher(`web${i}`, `vmi-${i}`))) started++;
      clock.now += 40 / 97;
    }
    // Three, and after the first hold of 30 s three more.
    console.log(`      ${started} of 97 launchers were sent to a node`);
    assert.equal(started, 6);
    assert.deepEqual([...new Set(events)], ['PlacementHeldBack VirtualMachineInstanceReplicaSet web rs-uid']);
  });

  for (const known of [true, false]) {
    it(`of one VM with many VMIs are held back${known ? '' : ', even if no watch has shown the VMI'}`, () => {
      const { owners, events, start } = setUp();
      let started = 0;
      for (let i = 0; i < 20; i++) {
        if (known) owners.learn('default', `vmi-${i}`, machine);
        if (start(launcher('vm-a', `vmi-${i}`))) started++;
      }
      assert.equal(started, 3);
      assert.match(events.join(), known ? /VirtualMachine vm-a vm-uid$/ : /VirtualMachineInstance vm-a vmi-2$/);
    });
  }

  it('do not affect VMs with that name in another namespace, VMs with similar names, or other replica sets', () => {
    const { owners, start } = setUp();
    for (let i = 0; i < 5; i++) {
      owners.learn('default', `vmi-${i}`, set);
      start(launcher(`web${i}`, `vmi-${i}`));
      start(launcher('vm-a', `of-vm-${i}`));
    }
    owners.learn('default', 'other', { ...set, name: 'we', uid: 'other-uid' });
    const free = [
      launcher('vm-a', 'x', 'elsewhere'),
      launcher('vm-a2', 'y'),
      launcher('webxy', 'z'),
      launcher('web7', 'other'),
    ];
    for (const pod of free) assert.ok(start(pod), pod.metadata.name);
  });

  it('are remembered up to a limit, the newest first', () => {
    const { owners } = setUp();
    for (let i = 0; i < 50_000; i++) owners.learn('default', `vmi-${i}`, set);
    assert.equal(owners.size, 5000);
    const controller = { apiVersion: 'kubevirt.io/v1', kind: KIND, name: 'web1', uid: 'vmi-49999' };
    assert.equal(owners.makerOf('default', controller).owner.name, 'web');
  });
});
