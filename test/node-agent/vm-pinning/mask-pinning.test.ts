import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';
import type { GuestThread } from '../../../node-agent/vm-pinning/guest.ts';
import { MaskPinning } from '../../../node-agent/vm-pinning/mask-pinning.ts';
import type { PinnedScope } from '../../../node-agent/vm-pinning/pins-file.ts';
import { FakeAffinity } from '../../native/affinity-stand-in.ts';
import { set } from '../support.ts';

/** A guest with threads `CPU n/KVM` from id 100 on, an IO thread (200) and the main thread (201). */
function guestOf(vcpus: number, container = '0-7', heldBefore?: PinnedScope) {
  const affinity = new FakeAffinity();
  const names = new Map<number, string>();
  const housekeeping: { cpus: CpuSet | undefined; fails: boolean } = { cpus: undefined, fails: false };
  const remembered: (PinnedScope | undefined)[] = [];
  const time = { now: 1000 };
  const add = (tid: number, name: string, cpus = container) => {
    names.set(tid, name);
    affinity.masks.set(tid, set(cpus));
  };
  for (let i = 0; i < vcpus; i++) add(100 + i, `CPU ${i}/KVM`);
  add(200, 'IO iothread1');
  add(201, 'qemu-kvm');
  const pinning = new MaskPinning({
    affinity: () => affinity,
    tree: {
      housekeeping: () => housekeeping.cpus,
      setHousekeeping(path, cpus) {
        assert.equal(path, '/c');
        if (housekeeping.fails) throw new Error('EACCES');
        housekeeping.cpus = cpus;
      },
    },
    nowSeconds: () => time.now / 1000,
    path: '/c',
    scopeBefore: heldBefore,
    saveScope: (scope) => void remembered.push(scope),
  });
  const look = (): GuestThread[] =>
    [...names].map(([tid, name]) => {
      return { tid, name, role: qemuThreadRole(name), allowed: CpuSet.fromWords(affinity.get(tid)) };
    });
  const vm = (mask: string, changes = {}) => ({
    mask: parseMask(mask),
    fixMismatch: false,
    online: set('0-15'),
    container: set(container),
    withheld: CpuSet.EMPTY,
    mayBePlugged: false,
    ...changes,
  });
  const textOf = (cpus = CpuSet.EMPTY) => (cpus.size > 64 ? 'all' : cpus.toString());
  const where = () => Object.fromEntries([...names.keys()].map((tid) => [tid, textOf(affinity.masks.get(tid))]));
  const keep = (mask: string, changes = {}) => pinning.keep(vm(mask, changes), look());
  const release = () => pinning.release(look(), set(container));
  return { affinity, housekeeping, remembered, time, names, add, where, keep, release };
}

const targetsOf = (outcome: { targets: ReadonlyMap<number, CpuSet> } | undefined) =>
  Object.fromEntries([...(outcome?.targets ?? [])].map(([tid, cpus]) => [tid, cpus.toString()]));

describe('the mask of a guest: vCPUs', () => {
  it('are set to their entries once, and again if another process moves them; other threads stay', () => {
    const guest = guestOf(2);
    const first = guest.keep('1:2-3');
    assert.deepEqual([first?.state, first?.reason, first?.moved, first?.pins.length], ['pinned', undefined, 2, 2]);
    assert.deepEqual(targetsOf(first), { 100: '1', 101: '2-3' });
    assert.deepEqual(guest.where(), { 100: '1', 101: '2-3', 200: '0-7', 201: '0-7' });
    assert.deepEqual(guest.remembered, ['vcpus']);
    guest.affinity.sets.length = 0;
    assert.equal(guest.keep('1:2-3')?.moved, 0);
    assert.deepEqual(guest.affinity.sets, []);
    guest.affinity.masks.set(101, set('5'));
    assert.equal(guest.keep('1:2-3')?.moved, 1, 'another process had moved it');
    assert.equal(guest.where()[101], '2-3');
  });

  it('are ordered by number, not by the list of threads', () => {
    const guest = guestOf(0);
    guest.add(110, 'CPU 1/KVM');
    guest.add(111, 'CPU 0/KVM');
    guest.keep('4:5');
    assert.deepEqual([guest.where()[111], guest.where()[110]], ['4', '5']);
  });

  it('are pinned together or not at all: if the kernel refuses one, all are restored', () => {
    const guest = guestOf(2);
    guest.affinity.forbidden.add(101);
    const { message, ...outcome } = guest.keep('1:2') ?? {};
    assert.deepEqual(outcome, { state: 'refused', reason: 'System', moved: 0, targets: new Map(), pins: [] });
    assert.match(message ?? '', /sched_setaffinity/);
    assert.deepEqual([guest.where()[100], guest.where()[101]], ['0-7', '0-7']);
  });

  it('are reported if they get other CPUs than requested', () => {
    const guest = guestOf(2);
    guest.affinity.cpusetOf = (tid) => (tid === 101 ? set('2') : undefined);
    const outcome = guest.keep('1:2-3');
    assert.deepEqual([outcome?.state, outcome?.reason], ['unpinned', 'System']);
    assert.match(outcome?.message ?? '', /thread 101 .*\(it got 2\)$/);
  });
});

describe('the mask of a guest: masks that cannot be applied', () => {
  it('give vCPUs all CPUs of their container back if refused later, once, and leave other threads alone', () => {
    const guest = guestOf(2);
    guest.affinity.cpusetOf = () => set('0-7');
    const withheld = set('0-7');
    // Pinned to all CPUs of the container, too.
    guest.keep('0-7:2');
    guest.affinity.sets.length = 0;
    const outcome = guest.keep('1:2', { withheld });
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['unpinned', 'Empty', 2]);
    assert.equal(guest.affinity.sets.map((text) => text.split(' ')[0]).join(), '100,101');
    assert.equal(guest.keep('1:2', { withheld })?.moved, 0);
    guest.affinity.masks.set(101, set('3'));
    assert.equal(guest.keep('1:2', { withheld })?.moved, 1, 'a thread that is elsewhere');
    guest.keep('0-7:2');
    assert.equal(guest.keep('1:2', { withheld })?.moved, 2, 'pinned and restored again');
  });

  it('unpin vCPUs that an agent without a record has pinned elsewhere, and all that one with a record has pinned', () => {
    const guest = guestOf(2);
    guest.affinity.masks.set(100, set('5'));
    const outcome = guest.keep('20:21');
    assert.deepEqual([outcome?.state, outcome?.moved, guest.where()[100]], ['unpinned', 1, 'all']);
    const other = guestOf(2);
    other.affinity.masks.set(200, set('5'));
    assert.deepEqual([other.keep('20:21')?.state, other.where()[200]], ['refused', '5'], 'no vCPU');
    const recorded = guestOf(2, '0-7', 'vcpus').keep('20:21');
    assert.deepEqual([recorded?.state, recorded?.moved], ['unpinned', 2]);
  });

  it('wait two seconds for missing vCPU threads, then are refused; the wait starts again after all threads existed', () => {
    const none = guestOf(0);
    assert.equal(none.keep('1'), undefined);
    none.time.now += 2000;
    assert.match(none.keep('1')?.message ?? '', /no vCPU threads/);
    const guest = guestOf(1);
    const stateAfter = (milliseconds: number) => {
      guest.time.now += milliseconds;
      return guest.keep('1:2')?.state;
    };
    assert.deepEqual([0, 1999].map(stateAfter), [undefined, undefined]);
    guest.add(101, 'CPU 1/KVM');
    assert.equal(stateAfter(0), 'pinned');
    guest.names.delete(101);
    assert.deepEqual([1999, 2000].map(stateAfter), [undefined, 'unpinned']);
    assert.equal(guest.keep('1:2')?.reason, 'Threads');
  });
});

describe('the mask of a guest: other numbers of vCPUs and entries', () => {
  it('keeps an entry for a missing vCPU in a migration’s target, after a wait for a vCPU that starts', () => {
    const guest = guestOf(1);
    assert.equal(guest.keep('1:2', { mayBePlugged: true }), undefined);
    guest.time.now += 2000;
    const outcome = guest.keep('1:2', { mayBePlugged: true });
    assert.deepEqual([outcome?.state, outcome?.reason], ['pinned', 'OtherVCPUs']);
    assert.match(outcome?.message ?? '', /entries for 2 vCPUs, and the VM has 1/);
    assert.equal(guest.where()[100], '1');
    // The wait is over once: it does not start again at each check.
    assert.equal(guest.keep('1:2', { mayBePlugged: true })?.state, 'pinned');
  });

  it('leaves a vCPU beyond the entries unpinned, without a wait', () => {
    const guest = guestOf(3);
    const outcome = guest.keep('1:2', { mayBePlugged: true });
    assert.deepEqual([outcome?.state, outcome?.reason, guest.where()[102]], ['pinned', 'OtherVCPUs', '0-7']);
  });
});

describe('the mask of a guest: fallback to `all`', () => {
  it('pins nothing, reports it, and wants the container’s CPUs for threads that it restores', () => {
    const guest = guestOf(2);
    const outcome = guest.keep('20:21', { fixMismatch: true });
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.pins, outcome?.moved], ['pinned', 'FellBack', [], 0]);
    assert.match(outcome?.message ?? '', /using "all" instead/);
    assert.deepEqual(targetsOf(outcome), { 100: '0-7', 101: '0-7' });
    guest.keep('1:2');
    assert.equal(guest.keep('20:21', { fixMismatch: true })?.moved, 2, 'pinned before');
    assert.deepEqual([guest.where()[100], guest.where()[101]], ['all', 'all']);
  });
});

describe('the mask of a guest: one entry for the whole VM', () => {
  it('moves every thread after it has opened the emulator’s cgroup', () => {
    const guest = guestOf(2);
    guest.housekeeping.cpus = set('7');
    const outcome = guest.keep('2-3');
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['pinned', undefined, 4]);
    assert.deepEqual(guest.where(), { 100: '2-3', 101: '2-3', 200: '2-3', 201: '2-3' });
    assert.deepEqual(targetsOf(outcome), { 100: '2-3', 101: '2-3', 200: '2-3', 201: '2-3' });
    assert.equal(String(guest.housekeeping.cpus), '2-3');
    assert.deepEqual(guest.remembered, ['vm']);
    guest.affinity.sets.length = 0;
    assert.equal(guest.keep('2-3')?.moved, 0);
    assert.deepEqual(guest.affinity.sets, []);
  });

  it('names threads that the kernel does not move and does not want them there; it omits ended ones', () => {
    const guest = guestOf(1);
    guest.affinity.forbidden.add(201);
    const outcome = guest.keep('2-3');
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['pinned', 'ThreadsLeft', 2]);
    assert.match(outcome?.message ?? '', /leaves 1 threads .* 201 \(qemu-kvm\) on 0-7$/);
    assert.deepEqual(targetsOf(outcome), { 100: '2-3', 200: '2-3' });
  });

  it('continues if the cgroup cannot be written', () => {
    const guest = guestOf(1);
    guest.housekeeping.cpus = set('7');
    guest.housekeeping.fails = true;
    assert.equal(guest.keep('2-3')?.state, 'pinned');
    assert.equal(String(guest.housekeeping.cpus), '7');
  });

  it('restores other threads if it becomes a mask for vCPUs, which stay pinned', () => {
    const guest = guestOf(2);
    guest.keep('2-3');
    const outcome = guest.keep('1:2');
    assert.deepEqual(guest.where(), { 100: '1', 101: '2', 200: 'all', 201: 'all' });
    assert.deepEqual(targetsOf(outcome), { 100: '1', 101: '2' });
    assert.deepEqual(guest.remembered.at(-1), 'vcpus');
    // From then on, the other threads are not managed.
    guest.affinity.sets.length = 0;
    assert.equal(guest.keep('1:2')?.moved, 0);
    assert.deepEqual(guest.affinity.sets, []);
  });

  it('restores all threads and the emulator’s cgroup to the container’s CPUs when removed', () => {
    const guest = guestOf(1);
    guest.housekeeping.cpus = set('7');
    guest.keep('2-3');
    assert.equal(guest.release(), 3);
    assert.deepEqual(guest.where(), { 100: 'all', 200: 'all', 201: 'all' });
    assert.equal(String(guest.housekeeping.cpus), '0-7');
    assert.deepEqual(guest.remembered, ['vm', undefined]);
  });
});

describe('the mask of a guest: removal', () => {
  it('restores vCPUs once, and leaves nothing pinned for a mask that is refused later', () => {
    const guest = guestOf(2);
    guest.keep('1:2');
    assert.equal(guest.release(), 2);
    assert.deepEqual(guest.where(), { 100: 'all', 101: 'all', 200: '0-7', 201: '0-7' });
    assert.deepEqual(guest.remembered, ['vcpus', undefined]);
    guest.affinity.sets.length = 0;
    assert.equal(guest.release(), 0);
    assert.deepEqual(guest.affinity.sets, []);
    guest.affinity.cpusetOf = () => set('0-7');
    assert.equal(guest.keep('20:21')?.state, 'refused');
  });

  it('moves what a previous agent pinned, and nothing if no mask was applied', () => {
    const guest = guestOf(2);
    guest.affinity.masks.set(100, set('3'));
    assert.deepEqual([guest.release(), guest.where()[100], guest.remembered], [0, '3', [undefined]]);
    assert.equal(guestOf(2, '0-7', 'vm').release(), 4);
  });
});
