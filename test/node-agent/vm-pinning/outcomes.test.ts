import assert from 'node:assert/strict';
import type { EventRecorder } from '../../../kube/events.ts';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import type { LauncherView } from '../../../node-agent/vm-pinning/launcher-pinning.ts';
import {
  createReporting,
  maskOverlaps,
  pinningStates,
  pinsText,
  statusOf,
} from '../../../node-agent/vm-pinning/reporting.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { recordingLogger } from '../support.ts';

const set = (text: string) => CpuSet.parse(text);
const thread = (tid: number, name: string, allowed = '0-7') => ({
  tid,
  name,
  role: qemuThreadRole(name),
  allowed: set(allowed),
});

interface Changes {
  readonly uid?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly mask?: string;
  readonly outcome?: Partial<NonNullable<LauncherView['mask']>>;
  readonly housekeeping?: Partial<NonNullable<LauncherView['housekeeping']>>;
  readonly pid?: number | undefined;
}

/** A VM with two vCPUs, pinned by `mask` if given. */
function viewOf({
  uid = 'u',
  name = 'vm',
  namespace = 'ns',
  mask,
  outcome,
  housekeeping,
  pid = 7,
}: Changes): LauncherView {
  const entries = mask === undefined ? [] : mask.split(':');
  return {
    launcher: {
      uid,
      namespace,
      podName: `virt-launcher-${name}`,
      vmi: { name, uid: `vmi-${uid}` },
      migrated: false,
      maskRequest: mask === undefined ? undefined : { mask: parseMask(mask), fixMismatch: false },
      problem: undefined,
      containerId: 'c',
    } as LauncherView['launcher'],
    pid,
    container: set('0-7'),
    threads: [
      thread(100, 'CPU 0/KVM'),
      thread(101, 'CPU 1/KVM'),
      thread(102, 'IO iothread1'),
      thread(103, 'qemu'),
      thread(104, 'worker'),
    ],
    mask:
      mask === undefined && outcome === undefined
        ? undefined
        : {
            state: 'pinned',
            targets: new Map(),
            pins: entries.map((entry, vcpu) => ({ vcpu, cpus: entry === 'all' ? set('0-7') : set(entry) })),
            moved: 0,
            ...outcome,
          },
    housekeeping:
      housekeeping === undefined
        ? undefined
        : { cgroup: set('5-6'), targets: new Map(), emulator: set('5'), repairs: 0, problems: [], ...housekeeping },
  };
}

describe('the report of VMs with a mask', () => {
  it('lists pods by uid with the number of vCPUs, without those that have no mask', () => {
    const states = pinningStates([
      viewOf({ uid: 'b', mask: '1:2' }),
      viewOf({ uid: 'x' }),
      viewOf({ uid: 'd', mask: '1:2' }),
      viewOf({ uid: 'c', mask: '1:2' }),
      viewOf({
        uid: 'a',
        mask: '3:4',
        outcome: { state: 'refused', reason: 'Empty', message: `y${'x'.repeat(5000)}` },
      }),
    ]);
    assert.deepEqual(
      states.map(({ podUID, state }) => [podUID, state]),
      [
        ['a', 'refused'],
        ['b', 'pinned'],
        ['c', 'pinned'],
        ['d', 'pinned'],
      ],
    );
    assert.deepEqual(states[1], {
      podUID: 'b',
      namespace: 'ns',
      podName: 'virt-launcher-vm',
      state: 'pinned',
      vcpus: 2,
    });
    assert.equal(states[0]?.reason, 'Empty');
    assert.match(states[0]?.message ?? '', /^yx/);
    assert.ok((states[0]?.message ?? '').length > 0 && (states[0]?.message ?? '').length < 5000);
  });

  it('lists overlaps of VMs that share CPUs, without vCPUs that may run anywhere', () => {
    const views = [
      viewOf({ uid: 'a', name: 'a', mask: '1:2' }),
      viewOf({ uid: 'b', name: 'b', mask: '2:3' }),
      viewOf({ uid: 'c', name: 'c', mask: '4:all' }),
      viewOf({ uid: 'd', name: 'd' }),
      // A vCPU beyond the entries may run anywhere.
      viewOf({ uid: 'g', name: 'g', mask: '5:6', outcome: { pins: [{ vcpu: 2, cpus: set('1-7') }] } }),
      viewOf({ uid: 'e', name: 'e', mask: '1:2', outcome: { pins: [] } }),
      { ...viewOf({ uid: 'f', name: 'f', mask: '1:2' }), mask: undefined },
    ];
    assert.deepEqual(
      maskOverlaps(views).map(({ a, b, cpus }) => [a.launcher.vmi.name, b.launcher.vmi.name, String(cpus)]),
      [['a', 'b', '2']],
    );
  });

  it('describes each vCPU, the whole VM and remarks as text', () => {
    assert.equal(pinsText(viewOf({ mask: '1:2-3' })), 'CPU mask 1:2-3: vCPU 0 on 1, vCPU 1 on 2-3');
    assert.equal(pinsText(viewOf({ mask: '1-2' })), 'CPU mask 1-2: the whole VM on 1-2');
    assert.equal(
      pinsText(viewOf({ mask: '1:2', outcome: { message: 'but' } })),
      'CPU mask 1:2: vCPU 0 on 1, vCPU 1 on 2; but',
    );
    assert.equal(pinsText(viewOf({ mask: '1:2', outcome: { pins: [] } })), 'CPU mask 1:2: nothing is pinned');
    assert.equal(pinsText(viewOf({ mask: '1:2', outcome: { pins: [], message: 'why' } })), 'CPU mask 1:2: why');
    assert.equal(pinsText(viewOf({})), '');
    assert.equal(pinsText({ ...viewOf({ mask: '1' }), mask: undefined }), '');
    const { launcher, ...rest } = viewOf({ mask: '1' });
    assert.equal(pinsText({ ...rest, launcher: { ...launcher, maskRequest: undefined } }), '');
  });
});

describe('the data of `plumbline vm status`', () => {
  it('lists VMs by namespace and name, with live threads, their current and their wanted CPUs', () => {
    const view = viewOf({
      name: 'b',
      uid: 'b',
      mask: '1:2',
      outcome: { message: 'm', targets: new Map([[100, set('1')]]) },
      housekeeping: { targets: new Map([[103, set('5')]]), problems: ['p'] },
    });
    const views = [
      viewOf({ name: 'c' }),
      view,
      viewOf({ name: 'a', namespace: 'ns' }),
      viewOf({ name: 'd' }),
      viewOf({ name: 'z', namespace: 'aa' }),
      viewOf({ name: 'a', namespace: 'zz' }),
    ];
    const status = statusOf(views, (tid) => (tid === 102 ? undefined : set(String(tid - 100))));
    assert.deepEqual(
      status.vms.map(({ namespace, vmi }) => `${namespace}/${vmi}`),
      ['aa/z', 'ns/a', 'ns/b', 'ns/c', 'ns/d', 'zz/a'],
    );
    assert.deepEqual(status.vms[2], {
      namespace: 'ns',
      vmi: 'b',
      podName: 'virt-launcher-b',
      podUID: 'b',
      pid: 7,
      container: '0-7',
      mask: '1:2',
      state: 'pinned',
      message: 'm',
      housekeeping: '5-6',
      problems: ['p'],
      threads: [
        { tid: 100, name: 'CPU 0/KVM', role: 'vCPU 0', allowed: '0', desired: '1' },
        { tid: 101, name: 'CPU 1/KVM', role: 'vCPU 1', allowed: '1', desired: null },
        { tid: 103, name: 'qemu', role: 'emulator', allowed: '3', desired: '5' },
        { tid: 104, name: 'worker', role: 'emulator', allowed: '4', desired: null },
      ],
    });
    const { mask, state, message, housekeeping, problems } = status.vms[1] ?? {};
    assert.deepEqual([mask, state, message, housekeeping, problems], [null, null, null, null, []]);
    const { pid: _, ...withoutQemu } = viewOf({});
    assert.equal(statusOf([{ ...withoutQemu, pid: undefined }], () => set('0')).vms[0]?.pid, null);
  });

  it('lists pairs of VMs that share CPUs, by name', () => {
    const status = statusOf([viewOf({ name: 'a', mask: '1-2' }), viewOf({ name: 'b', mask: '2-3' })], () => undefined);
    assert.deepEqual(status.overlaps, [{ vms: ['ns/a', 'ns/b'], cpus: '2' }]);
  });
});

describe('reports about a VM', () => {
  function reporter() {
    const registry = new Registry();
    const logged = recordingLogger();
    const events: { about: string; type: string; reason: string; message: string }[] = [];
    const recorder: EventRecorder = {
      record: (target, { type, reason, message }) =>
        void events.push({
          about: `${target.kind} ${target.namespace}/${target.name} ${target.uid}`,
          type,
          reason,
          message,
        }),
      flush: async () => {},
    };
    const metrics = createAgentMetrics(registry);
    const reporting = createReporting({ events: recorder, nodeName: 'n1', log: logged.log, metrics });
    const metric = async (line: string) => {
      const text = await registry.metrics();
      return text
        .split('\n')
        .find((one) => one.startsWith(`plumbline_${line} `))
        ?.split(' ')
        .at(-1);
    };
    return { reporting, events, logged, metric };
  }

  it('record an applied mask on the VM once, while it stays the same', () => {
    const { reporting, events, logged } = reporter();
    const view = viewOf({ mask: '1:2' });
    reporting.views([view]);
    reporting.views([view]);
    assert.deepEqual(events, [
      {
        about: 'VirtualMachineInstance ns/vm vmi-u',
        type: 'Normal',
        reason: 'CPUMaskApplied',
        message: 'CPU mask 1:2: vCPU 0 on 1, vCPU 1 on 2',
      },
    ]);
    assert.deepEqual(
      logged.lines.map(({ level }) => level),
      [30],
    );
    reporting.views([viewOf({ mask: '1:3' })]);
    assert.equal(events.length, 2);
    reporting.forget('other');
    reporting.views([viewOf({ mask: '1:3' })]);
    assert.equal(events.length, 2);
    reporting.forget('u');
    reporting.views([viewOf({ mask: '1:3' })]);
    assert.equal(events.length, 3);
  });

  const outcomes: [string, NonNullable<Changes['outcome']>, string, string, string][] = [
    ['refused', { state: 'refused', reason: 'Empty', message: 'why' }, 'Warning', 'CPUMaskRefused', 'why'],
    ['unpinned', { state: 'unpinned', reason: 'Empty', message: 'why' }, 'Warning', 'CPUMaskNotApplied', 'why'],
    ['refused without a message', { state: 'refused' }, 'Warning', 'CPUMaskRefused', ''],
    ['fallen back', { reason: 'FellBack', message: 'all' }, 'Warning', 'CPUMaskFellBack', 'all'],
    ['a different number of vCPUs', { reason: 'OtherVCPUs', message: 'more' }, 'Warning', 'CPUMaskOtherVCPUs', 'more'],
    [
      'threads that were not moved',
      { reason: 'ThreadsLeft', message: 'left' },
      'Normal',
      'CPUMaskApplied',
      'CPU mask 1:2: vCPU 0 on 1, vCPU 1 on 2; left',
    ],
    [
      'refused, with the reason of a remark about an applied mask',
      { state: 'refused', reason: 'FellBack', message: 'no' },
      'Warning',
      'CPUMaskRefused',
      'no',
    ],
  ];
  for (const [name, outcome, type, reason, message] of outcomes) {
    it(`record a mask: ${name}`, () => {
      const { reporting, events, logged } = reporter();
      reporting.views([viewOf({ mask: '1:2', outcome })]);
      assert.deepEqual(
        events.map((event) => [event.type, event.reason, event.message]),
        [[type, reason, message]],
      );
      assert.equal(logged.lines[0]?.['level'], type === 'Normal' ? 30 : 40);
    });
  }

  it('have messages of at most 1 KiB', () => {
    const { reporting, events } = reporter();
    const message = 'x'.repeat(5000);
    reporting.views([viewOf({ mask: '1:2', outcome: { state: 'refused', message } })]);
    reporting.views([viewOf({ uid: 'v', mask: '1:2', outcome: { reason: 'FellBack', message } })]);
    reporting.views([viewOf({ uid: 'w', housekeeping: { problems: [message] } })]);
    assert.deepEqual(
      events.map((event) => event.message.length),
      [1024, 1024, 1024],
    );
  });

  it('log the CPUs of the emulator once, and record failures on the VM once', () => {
    const { reporting, events, logged } = reporter();
    reporting.views([viewOf({ housekeeping: {} })]);
    reporting.views([viewOf({ housekeeping: {} })]);
    assert.equal(logged.lines.length, 1);
    assert.deepEqual(
      [logged.lines[0]?.['vmi'], logged.lines[0]?.['pod'], events],
      ['ns/vm', 'ns/virt-launcher-vm', []],
    );
    reporting.views([viewOf({ housekeeping: { problems: ['a', 'b'] } })]);
    reporting.views([viewOf({ housekeeping: { problems: ['a', 'b'] } })]);
    assert.deepEqual(
      events.map(({ type, reason, message }) => [type, reason, message]),
      [['Warning', 'HousekeepingIncomplete', 'a; b']],
    );
    reporting.views([viewOf({ housekeeping: {} })]);
    assert.equal(events.length, 1);
    const { msg, was, lastedSeconds } = logged.lines.at(-1) ?? {};
    assert.deepEqual([msg, was, lastedSeconds], ['recovered', 'HousekeepingIncomplete', 0]);
    reporting.views([viewOf({ housekeeping: { problems: ['a', 'b'] } })]);
    assert.equal(events.length, 2);
    reporting.views([viewOf({ housekeeping: { problems: ['a', 'b'], emulator: set('6') } })]);
    assert.deepEqual([events.length, logged.lines.filter(({ vmi, cpus }) => vmi && cpus).length], [2, 2]);
    reporting.forget('u');
    reporting.views([viewOf({ housekeeping: { problems: ['a', 'b'], emulator: set('6') } })]);
    assert.equal(events.length, 3);
  });

  it('have metrics for VMs by state and for each change', async () => {
    const { reporting, metric } = reporter();
    const views = [
      viewOf({ uid: '1', mask: '1:2', outcome: { moved: 3 } }),
      viewOf({ uid: '2', mask: '1:2', outcome: { moved: 2 } }),
      viewOf({ uid: '3', mask: '1:2', outcome: { state: 'refused' } }),
      viewOf({ uid: '4', housekeeping: { repairs: 4 } }),
      viewOf({ uid: '5', housekeeping: { problems: ['p'], repairs: 1 } }),
      viewOf({ uid: '6', housekeeping: {} }),
    ];
    reporting.views(views);
    assert.equal(await metric('vm_pinning{state="pinned"}'), '2');
    assert.equal(await metric('vm_pinning{state="unpinned"}'), '0');
    assert.equal(await metric('vm_pinning{state="refused"}'), '1');
    assert.equal(await metric('vm_housekeeping{state="kept"}'), '2');
    assert.equal(await metric('vm_housekeeping{state="incomplete"}'), '1');
    assert.equal(await metric('vm_thread_moves_total{cause="mask"}'), '5');
    assert.equal(await metric('vm_thread_moves_total{cause="housekeeping"}'), '5');
  });

  it('record the first eight overlaps on the node once, and nothing without overlaps', async () => {
    const { reporting, events, metric } = reporter();
    const pair = (i: number) => ({ a: viewOf({ name: `a${i}` }), b: viewOf({ name: `b${i}` }), cpus: set(`${i}`) });
    reporting.overlaps([]);
    assert.equal(events.length, 0);
    reporting.overlaps([pair(1)]);
    reporting.overlaps([pair(1)]);
    assert.deepEqual(events, [
      {
        about: 'Node undefined/n1 n1',
        type: 'Warning',
        reason: 'CPUMasksOverlap',
        message: 'virtual machines share CPUs: ns/a1 and ns/b1 on 1',
      },
    ]);
    assert.equal(await metric('vm_mask_overlaps'), '1');
    reporting.overlaps(Array.from({ length: 8 }, (_, i) => pair(i)));
    assert.match(events[1]?.message ?? '', /ns\/a7 and ns\/b7 on 7$/);
    reporting.overlaps(Array.from({ length: 10 }, (_, i) => pair(i)));
    assert.match(events[2]?.message ?? '', /ns\/a7 and ns\/b7 on 7; and 2 more$/);
    reporting.overlaps([]);
    assert.equal(events.length, 3);
    assert.equal(await metric('vm_mask_overlaps'), '0');
    reporting.overlaps([pair(1)]);
    assert.equal(events.length, 4);
  });
});
