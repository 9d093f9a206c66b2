import assert from 'node:assert/strict';
import type { EventTarget, EventText } from '../../../kube/events.ts';
import { DECISION_ANNOTATION } from '../../../model/names.ts';
import { observedPod } from '../../../scheduler-plugin/cluster/pod-view.ts';
import {
  createQuarantine,
  launcherAnnouncer,
  launcherEventsOf,
} from '../../../scheduler-plugin/controllers/launcher-events.ts';

const PADDED = '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}';
/** A launcher of the VMI `fw`. */
function launcher({ uid = 'p1', label = 'virt-launcher', node = '' } = {}) {
  const kind = 'VirtualMachineInstance';
  const reference = { apiVersion: 'kubevirt.io/v1', kind, name: 'fw', uid: 'v1', controller: true };
  const names = { name: 'virt-launcher-fw-abcde', namespace: 'east', uid, labels: { 'kubevirt.io': label } };
  const annotations = { [DECISION_ANNOTATION]: PADDED };
  const metadata = { ...names, annotations, ownerReferences: [reference] };
  return observedPod.parse({ metadata, spec: { containers: [{ name: 'compute' }], nodeName: node } });
}
function stage() {
  const recorded: [EventTarget, EventText][] = [];
  const replica = { active: true };
  const events = { record: (target: EventTarget, event: EventText) => void recorded.push([target, event]) };
  return { seen: launcherAnnouncer({ events, active: () => replica.active }), recorded, replica };
}
describe('the Events about a launcher', () => {
  it('are on its VMI, once for each launcher', () => {
    const { seen, recorded } = stage();
    for (const uid of ['p1', 'p1', 'p2']) seen(launcher({ uid }));
    const kind = 'VirtualMachineInstance';
    const vmi = { apiVersion: 'kubevirt.io/v1', kind, namespace: 'east', name: 'fw', uid: 'v1' };
    const [first, second] = recorded.map(([target, { reason }]) => [target, reason]);
    assert.deepEqual([first, second, recorded.length], [[vmi, 'PaddedToWholeCores'], first, 2]);
  });

  /** Whether this replica was active, and the launcher's node. */
  const SEEN: Readonly<Record<string, readonly [active: boolean, node: string]>> = {
    passive: [false, ''],
    active: [true, ''],
    'placed while passive': [false, 'n1'],
    'placed while active': [true, 'n1'],
  };
  for (const [what, changes, count] of [
    ['before another replica placed it', ['passive'], 0],
    ['after another replica placed it', ['passive', 'placed while passive', 'placed while active'], 0],
    ['that waits when this one takes over', ['passive', 'active'], 1],
    ['that is placed by this one, seen before', ['passive', 'placed while active', 'placed while active'], 1],
  ] as const)
    it(`are ${count === 0 ? 'none' : 'written'} for a launcher ${what}`, () => {
      const { seen, recorded, replica } = stage();
      for (const [active, node] of changes.map((change) => SEEN[change]!)) {
        replica.active = active;
        seen(launcher({ node }));
      }
      assert.equal(recorded.length, count);
    });

  it('are none for a launcher that had a node when it was first seen, and a pod without the label', () => {
    const { seen, recorded } = stage();
    for (const pod of [launcher({ node: 'n1' }), launcher({ label: 'other' })]) seen(pod);
    assert.deepEqual(recorded, []);
  });

  it('describe padding, devices, nodes and notes', () => {
    const notes = [{ type: 'Warning', reason: 'LauncherNotAligned', message: 'no node reports the physnet west' }];
    const nodes = ['a NotIn 4,8', 'b NotIn true'];
    const decision = { ...JSON.parse(PADDED), resources: ['physnet.plumbline.dev/east'], nodes, notes };
    const events = launcherEventsOf(JSON.stringify(decision));
    const texts = events.map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
    assert.deepEqual(texts, [
      "Normal PaddedToWholeCores: Padded the launcher's CPUs from 9 to 10: whole cores of 2 threads. Quotas and limit ranges of the namespace apply to 10 CPUs",
      'Normal NodesRestrictedByNetworks: The launcher asks for CPUs on the NUMA nodes of its networks: physnet.plumbline.dev/east',
      'Normal NodesRestrictedByCores: The launcher avoids nodes that would reject its CPUs: a NotIn 4,8, or b NotIn true',
      'Warning LauncherNotAligned: no node reports the physnet west',
    ]);
  });
});
describe('quarantined reports', () => {
  it('are counted by every replica; the active one records an Event on the Node, also when it becomes active', () => {
    const faults = new Map([['n1', { code: 'contradiction', message: 'the report lies' } as const]]);
    const [events, counts]: [unknown[], number[]] = [[], []];
    let active = false;
    const quarantine = createQuarantine({
      faults,
      events: { record: (...event) => void events.push(event) },
      active: () => active,
      metrics: { quarantinedReports: { set: (count: number) => void counts.push(count) } as never },
    });
    quarantine.changed('n1', faults.get('n1'));
    quarantine.announceAll();
    assert.deepEqual([events, counts], [[], [1]]);
    active = true;
    quarantine.announceAll();
    const message = "the report lies; Plumbline ignores this node's report";
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' };
    const expected = [node, { type: 'Warning', reason: 'ReportQuarantined', message }];
    assert.deepEqual(events, [expected]);
    quarantine.changed('n1', faults.get('n1'));
    faults.clear();
    quarantine.changed('n1', undefined);
    assert.deepEqual([events.length, counts], [2, [1, 1, 0]]);
  });
});
