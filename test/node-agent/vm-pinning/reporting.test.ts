import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';
import type { LauncherView } from '../../../node-agent/vm-pinning/launcher-pinning.ts';
import {
  maskOverlaps,
  PinningReporting,
  pinningStates,
  pinsText,
  statusOf,
} from '../../../node-agent/vm-pinning/reporting.ts';
import { recordingEvents, recordingLogger, set, testMetrics, valuesOf } from '../support.ts';

interface Changes {
  readonly uid?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly mask?: string;
  readonly outcome?: Partial<NonNullable<LauncherView['mask']>>;
  readonly housekeeping?: Partial<NonNullable<LauncherView['housekeeping']>>;
}

/** A VM with two vCPUs, pinned by `mask` if given. */
function viewOf({ uid = 'u', name = 'vm', namespace = 'ns', mask, outcome, housekeeping }: Changes): LauncherView {
  const cpus = (entry: string) => set(entry === 'all' ? '0-7' : entry);
  const pins = (mask?.split(':') ?? []).map((entry, vcpu) => ({ vcpu, cpus: cpus(entry) }));
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
    pid: 7,
    container: set('0-7'),
    threads: ['CPU 0/KVM', 'CPU 1/KVM', 'IO iothread1', 'qemu', 'worker'].map((thread, i) => {
      return { tid: 100 + i, name: thread, role: qemuThreadRole(thread), allowed: set('0-7') };
    }),
    mask: mask === undefined ? undefined : { state: 'pinned', targets: new Map(), pins, moved: 0, ...outcome },
    housekeeping: housekeeping && {
      cgroup: set('5-6'),
      targets: new Map(),
      emulator: set('5'),
      repairs: 0,
      problems: [],
      ...housekeeping,
    },
  };
}

describe('the report of VMs with a mask', () => {
  it('lists pods by uid with the number of vCPUs, without those that have no mask', () => {
    const refused = { state: 'refused', reason: 'Empty', message: 'y'.repeat(5000) } as const;
    const [first, second, ...rest] = pinningStates([
      viewOf({ uid: 'b', mask: '1:2' }),
      viewOf({ uid: 'x' }),
      viewOf({ uid: 'a', mask: '3:4', outcome: refused }),
    ]);
    const common = { namespace: 'ns', podName: 'virt-launcher-vm', vcpus: 2 };
    assert.deepEqual({ ...first, message: '' }, { podUID: 'a', ...common, ...refused, message: '' });
    assert.match(first?.message ?? '', /^y{100,4999}$/);
    assert.deepEqual([second, rest], [{ podUID: 'b', ...common, state: 'pinned' }, []]);
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
    const pairs = maskOverlaps(views).map(({ a, b, cpus }) => `${a.launcher.vmi.name} ${b.launcher.vmi.name} ${cpus}`);
    assert.deepEqual(pairs, ['a b 2']);
  });

  it('describes each vCPU, the whole VM and remarks as text', () => {
    const text = (mask: string, outcome: Changes['outcome'] = {}) => pinsText(viewOf({ mask, outcome }));
    assert.equal(text('1:2-3'), 'CPU mask 1:2-3: vCPU 0 on 1, vCPU 1 on 2-3');
    assert.equal(text('1-2'), 'CPU mask 1-2: the whole VM on 1-2');
    assert.equal(text('1:2', { message: 'but' }), 'CPU mask 1:2: vCPU 0 on 1, vCPU 1 on 2; but');
    assert.equal(text('1:2', { pins: [] }), 'CPU mask 1:2: nothing is pinned');
    assert.equal(text('1:2', { pins: [], message: 'why' }), 'CPU mask 1:2: why');
    assert.equal(pinsText(viewOf({})), '');
  });
});

describe('the data of `plumbline vm status`', () => {
  it('lists VMs by namespace and name, with live threads, their current and their desired CPUs', () => {
    const outcome = { message: 'm', targets: new Map([[100, set('1')]]) };
    const housekeeping = { targets: new Map([[103, set('5')]]), problems: ['p'] };
    const views = [
      viewOf({ name: 'b', uid: 'b', mask: '1:2', outcome, housekeeping }),
      viewOf({ name: 'a' }),
      viewOf({ name: 'z', namespace: 'aa' }),
    ];
    const { vms } = statusOf(views, (tid) => (tid === 102 ? undefined : set(String(tid - 100))));
    assert.equal(vms.map(({ namespace, vmi }) => `${namespace}/${vmi}`).join(), 'aa/z,ns/a,ns/b');
    assert.deepEqual(vms[2], {
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
    const { mask, state, message, housekeeping: cpus, problems } = vms[1] ?? {};
    assert.deepEqual([mask, state, message, cpus, problems], [null, null, null, null, []]);
    assert.equal(statusOf([{ ...viewOf({}), pid: undefined }], () => set('0')).vms[0]?.pid, null);
  });
});

describe('reports about a VM', () => {
  const VMI = 'kubevirt.io/v1 VirtualMachineInstance ns/vm vmi-u';
  function reporter() {
    const logged = recordingLogger();
    const { events, recorder } = recordingEvents();
    const metrics = testMetrics();
    const reporting = new PinningReporting({ events: recorder, nodeName: 'n1', log: logged.log, metrics });
    return { reporting, events, logged, metrics };
  }

  it('record an applied mask on the VM once, while it stays the same', () => {
    const { reporting, events, logged } = reporter();
    for (let i = 0; i < 2; i++) reporting.views([viewOf({ mask: '1:2' })]);
    const message = 'CPU mask 1:2: vCPU 0 on 1, vCPU 1 on 2';
    assert.deepEqual(events, [{ about: VMI, type: 'Normal', reason: 'CPUMaskApplied', message }]);
    assert.equal(logged.lines.length, 1);
    reporting.views([viewOf({ mask: '1:3' })]);
    reporting.forget('other');
    reporting.views([viewOf({ mask: '1:3' })]);
    assert.equal(events.length, 2);
    reporting.forget('u');
    reporting.views([viewOf({ mask: '1:3' })]);
    assert.equal(events.length, 3);
  });

  const outcomes: [string, NonNullable<Changes['outcome']>, type: string, reason: string][] = [
    ['refused', { state: 'refused', reason: 'Empty' }, 'Warning', 'CPUMaskRefused'],
    ['unpinned', { state: 'unpinned', reason: 'Empty' }, 'Warning', 'CPUMaskNotApplied'],
    ['fallen back', { reason: 'FellBack' }, 'Warning', 'CPUMaskFellBack'],
    ['a different number of vCPUs', { reason: 'OtherVCPUs' }, 'Warning', 'CPUMaskOtherVCPUs'],
    ['threads that were not moved', { reason: 'ThreadsLeft' }, 'Normal', 'CPUMaskApplied'],
    ['refused, with the reason of a remark', { state: 'refused', reason: 'FellBack' }, 'Warning', 'CPUMaskRefused'],
  ];
  for (const [label, outcome, type, reason] of outcomes) {
    it(`record a mask: ${label}`, () => {
      const { reporting, events, logged } = reporter();
      reporting.views([viewOf({ mask: '1:2', outcome: { ...outcome, message: 'why' } })]);
      const [{ message, ...event } = { message: '' }, ...more] = events;
      assert.deepEqual([event, more], [{ about: VMI, type, reason }, []]);
      assert.match(message, /(^|; )why$/);
      assert.equal(logged.lines[0]?.['level'], type === 'Normal' ? 30 : 40);
    });
  }

  it('have messages of at most 1 KiB', () => {
    const { reporting, events } = reporter();
    reporting.views([viewOf({ mask: '1:2', outcome: { state: 'refused', message: 'x'.repeat(5000) } })]);
    reporting.views([viewOf({ uid: 'w', housekeeping: { problems: ['x'.repeat(5000)] } })]);
    assert.deepEqual([events[0]?.message.length, events[1]?.message.length], [1024, 1024]);
  });

  it('log the CPUs of the emulator once, and record failures on the VM once', () => {
    const { reporting, events, logged } = reporter();
    const see = (housekeeping: NonNullable<Changes['housekeeping']>) => {
      for (let i = 0; i < 2; i++) reporting.views([viewOf({ housekeeping })]);
      return [events.length, logged.lines.filter(({ msg }) => msg === 'moved emulator threads').length];
    };
    const problems = ['a', 'b'];
    assert.deepEqual(see({}), [0, 1]);
    assert.deepEqual(see({ problems }), [1, 1]);
    assert.deepEqual([events[0]?.reason, events[0]?.message], ['HousekeepingIncomplete', 'a; b']);
    see({});
    assert.deepEqual(see({ problems }), [2, 1]);
    assert.deepEqual(see({ problems, emulator: set('6') }), [2, 2]);
    reporting.forget('u');
    assert.deepEqual(see({ problems, emulator: set('6') }), [3, 3]);
  });

  it('have metrics for VMs by state and for each change', async () => {
    const { reporting, metrics } = reporter();
    const views = [
      viewOf({ uid: '1', mask: '1:2', outcome: { moved: 3 } }),
      viewOf({ uid: '2', mask: '1:2', outcome: { moved: 2 } }),
      viewOf({ uid: '3', mask: '1:2', outcome: { state: 'refused' } }),
      viewOf({ uid: '4', housekeeping: { repairs: 4 } }),
      viewOf({ uid: '5', housekeeping: { problems: ['p'], repairs: 1 } }),
      viewOf({ uid: '6', housekeeping: {} }),
    ];
    reporting.views(views);
    assert.deepEqual(await valuesOf(metrics.vmPinning), { pinned: 2, unpinned: 0, refused: 1 });
    assert.deepEqual(await valuesOf(metrics.vmHousekeeping), { kept: 2, incomplete: 1 });
    assert.deepEqual(await valuesOf(metrics.vmThreadMoves), { mask: 5, housekeeping: 5 });
  });

  it('record the first eight overlaps on the node once, and nothing without overlaps', async () => {
    const { reporting, events, metrics } = reporter();
    const pairs = (count: number) =>
      Array.from({ length: count }, (_, i) => {
        return { a: viewOf({ name: `a${i}` }), b: viewOf({ name: `b${i}` }), cpus: set(`${i}`) };
      });
    for (const count of [0, 1, 1]) reporting.overlaps(pairs(count));
    const message = 'virtual machines share CPUs: ns/a0 and ns/b0 on 0';
    assert.deepEqual(events, [
      { about: 'v1 Node undefined/n1 n1', type: 'Warning', reason: 'CPUMasksOverlap', message },
    ]);
    assert.deepEqual(await valuesOf(metrics.vmMaskOverlaps), { '': 1 });
    reporting.overlaps(pairs(10));
    assert.match(events[1]?.message ?? '', /ns\/a7 and ns\/b7 on 7; and 2 more$/);
    reporting.overlaps([]);
    assert.deepEqual(await valuesOf(metrics.vmMaskOverlaps), { '': 0 });
    reporting.overlaps(pairs(1));
    assert.equal(events.length, 3);
  });
});
