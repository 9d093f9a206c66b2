import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { EventTarget, EventText } from '../../../kube/events.ts';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import type { SelectingSpec } from '../../../model/launcher/node-selection.ts';
import { DECISION_ANNOTATION } from '../../../model/names.ts';
import type { MaskedVm } from '../../../model/placement/mask-fit.ts';
import { type ObservedPod, observedPod } from '../../../scheduler-plugin/cluster/pod-view.ts';
import {
  createQuarantine,
  launcherAnnouncer,
  launcherEventsOf,
} from '../../../scheduler-plugin/controllers/launcher-events.ts';
import { createMaskSurvey, type MaskCounts } from '../../../scheduler-plugin/controllers/mask-survey.ts';
import { extenderOf, statusOf } from '../extender-fixture.ts';

const four = statusOf({ cells: [{ id: 0, cpus: '0-3' }], cores: ['0', '1', '2', '3'], reserved: '0', physnets: [] });
function vm(
  mask: string,
  { fix = false, selection = {} }: { fix?: boolean; selection?: SelectingSpec } = {},
): MaskedVm {
  return { maskRequest: { mask: parseMask(mask), fixMismatch: fix }, fault: undefined, selection };
}
/** A node with 16 CPUs, one with four, and one that does not report. */
function surveyOf(vms: readonly MaskedVm[], { stale = false } = {}) {
  const { state } = extenderOf({
    nodes: { large: statusOf(), small: four, silent: undefined },
    flags: stale ? { large: 'stale' } : {},
  });
  const seen = { counted: [] as MaskCounts[], active: true };
  for (const [name, size] of [
    ['large', 'l'],
    ['small', 's'],
  ] as const) {
    state.nodeChanged(name, { dpuHost: false, labels: new Map([['size', size]]) });
  }
  const survey = createMaskSurvey({
    fleet: state.fleet,
    masked: () => vms,
    active: () => seen.active,
    onCounted: (counts) => void seen.counted.push(counts),
  });
  return { survey, state, seen };
}
describe('the count of masks that fit no node', () => {
  const bySize = (size: string): SelectingSpec => ({ nodeSelector: { size } });
  const counts: [string, MaskedVm[], MaskCounts][] = [
    ['a mask that may fall back to all CPUs', [vm('40', { fix: true }), vm('40')], { vms: 2, withoutNode: 1 }],
    ['a mask of a VM that selects the small node', [vm('9', { selection: bySize('s') })], { vms: 1, withoutNode: 1 }],
    [
      'an unreadable mask, and one that fits',
      [{ maskRequest: undefined, fault: 'CPU mask "1:" …', selection: {} }, vm('1')],
      { vms: 2, withoutNode: 1 },
    ],
  ];
  for (const [what, vms, count] of counts) {
    it(`${what}: ${count.withoutNode} of ${count.vms}`, async () => {
      assert.deepEqual(await surveyOf(vms).survey.count(), count);
    });
  }

  it('follows the reports, and excludes nodes with a silent agent', async () => {
    const { survey, state } = surveyOf([vm('9')]);
    assert.equal((await survey.count())?.withoutNode, 0);
    state.reportChanged('large', { ...statusOf(), assignments: [{ podUID: 'p', container: 'c', cpus: '9' }] });
    assert.equal((await survey.count())?.withoutNode, 1);
    assert.equal((await surveyOf([vm('9')], { stale: true }).survey.count())?.withoutNode, 1);
  });

  it('is empty on a replica that is not active', async () => {
    const { survey, seen } = surveyOf([vm('40')]);
    seen.active = false;
    const stop = new AbortController();
    const ended = survey.run(stop.signal);
    stop.abort();
    await ended;
    assert.deepEqual(seen.counted, [{ vms: 0, withoutNode: 0 }]);
  });
});
describe('the interval between counts of masks', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
  });
  const flush = async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  it('is five seconds, or twenty times the duration of a long count', async () => {
    const clock = { now: 0, step: 0 };
    mock.method(performance, 'now', () => {
      clock.now += clock.step;
      return clock.now;
    });
    const { survey, seen } = surveyOf([]);
    const stop = new AbortController();
    const ended = survey.run(stop.signal);
    /** Counts after so many milliseconds. */
    const countsAfter = async (milliseconds: number) => {
      mock.timers.tick(milliseconds);
      await flush();
      return seen.counted.length;
    };
    assert.deepEqual([await countsAfter(0), await countsAfter(4999)], [1, 1]);
    // The next count takes half a second.
    clock.step = 500;
    assert.deepEqual([await countsAfter(1), await countsAfter(9999), await countsAfter(1)], [2, 2, 3]);
    stop.abort();
    await ended;
  });
});

const PADDED = '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}';
/** A launcher of the VMI `fw`. */
function launcher({ uid = 'p1', label = 'virt-launcher', node = '', created = '2026-11-01T10:00:00Z' } = {}) {
  const kind = 'VirtualMachineInstance';
  const reference = { apiVersion: 'kubevirt.io/v1', kind, name: 'fw', uid: 'v1', controller: true };
  return observedPod.parse({
    metadata: {
      name: 'virt-launcher-fw-abcde',
      namespace: 'east',
      uid,
      creationTimestamp: created,
      labels: { 'kubevirt.io': label },
      annotations: { [DECISION_ANNOTATION]: PADDED },
      ownerReferences: [reference],
    },
    spec: { containers: [{ name: 'compute' }], nodeName: node },
  });
}
function stage() {
  const recorded: [EventTarget, EventText][] = [];
  const replica = { active: true };
  const events = { record: (target: EventTarget, event: EventText) => void recorded.push([target, event]) };
  return { seen: launcherAnnouncer(events, () => replica.active), recorded, replica };
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

  for (const [what, changes, count] of [
    ['before another replica placed it', [[false, '']], 0],
    [
      'after another replica placed it',
      [
        [false, ''],
        [false, 'n1'],
        [true, 'n1'],
      ],
      0,
    ],
    [
      'that waits when this one takes over',
      [
        [false, ''],
        [true, ''],
      ],
      1,
    ],
    [
      'that is placed by this one, seen before it took over',
      [
        [false, ''],
        [true, 'n1'],
        [true, 'n1'],
      ],
      1,
    ],
  ] as const) {
    it(`are ${count === 0 ? 'none' : 'written'} for a launcher ${what}`, () => {
      const { seen, recorded, replica } = stage();
      for (const [active, node] of changes) {
        replica.active = active;
        seen(launcher({ node }));
      }
      assert.equal(recorded.length, count);
    });
  }

  for (const created of ['1999-01-01T00:00:00Z', '2099-01-01T00:00:00Z', 'x']) {
    it(`are written whatever the clocks say: created ${created}`, () => {
      const { seen, recorded } = stage();
      seen(launcher({ created }));
      assert.equal(recorded.length, 1);
    });
  }

  const silent: [string, ObservedPod][] = [
    ['a launcher that had a node when it was first seen', launcher({ node: 'n1' })],
    ['a pod without the label', launcher({ label: 'other' })],
  ];
  for (const [label, pod] of silent) {
    it(`are none for ${label}`, () => {
      const { seen, recorded } = stage();
      seen(pod);
      assert.deepEqual(recorded, []);
    });
  }

  it('describe padding, devices, nodes and notes', () => {
    const notes = [{ type: 'Warning', reason: 'LauncherNotAligned', message: 'no node reports the physnet west' }];
    const decision = {
      ...JSON.parse(PADDED),
      resources: ['physnet.plumbline.dev/east'],
      nodes: ['a NotIn 4,8', 'b NotIn true'],
      notes,
    };
    assert.deepEqual(
      launcherEventsOf(JSON.stringify(decision)).map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
      [
        "Normal PaddedToWholeCores: Padded the launcher's CPUs from 9 to 10: whole cores of 2 threads. Quotas and limit ranges of the namespace apply to 10 CPUs",
        'Normal NodesRestrictedByNetworks: The launcher asks for CPUs on the NUMA nodes of its networks: physnet.plumbline.dev/east',
        'Normal NodesRestrictedByCores: The launcher avoids nodes that would reject its CPUs: a NotIn 4,8, or b NotIn true',
        'Warning LauncherNotAligned: no node reports the physnet west',
      ],
    );
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
