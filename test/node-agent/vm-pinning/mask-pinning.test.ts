import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';
import type { GuestThread } from '../../../node-agent/vm-pinning/guest.ts';
import { createMaskPinning } from '../../../node-agent/vm-pinning/mask-pinning.ts';
import type { PinnedScope } from '../../../node-agent/vm-pinning/pins-file.ts';
import { createFakeAffinity } from './affinity-stand-in.ts';

const set = (text: string) => CpuSet.parse(text);

/** One guest whose threads are `CPU n/KVM` from id 100 on, an IO thread (200) and the main thread (201). */
function guestOf(vcpus: number, container = '0-7', heldBefore?: PinnedScope) {
  const affinity = createFakeAffinity();
  const names = new Map<number, string>();
  const housekeeping: { cpus: CpuSet | undefined; fails: boolean } = { cpus: undefined, fails: false };
  const remembered: (PinnedScope | undefined)[] = [];
  const time = { now: 1000 };
  const counts = { writes: 0 };
  const add = (tid: number, name: string, cpus = container) => {
    names.set(tid, name);
    affinity.masks.set(tid, set(cpus));
  };
  for (let i = 0; i < vcpus; i++) add(100 + i, `CPU ${i}/KVM`);
  add(200, 'IO iothread1');
  add(201, 'qemu-kvm');
  affinity.cpusetOf = () => undefined;
  const pinning = createMaskPinning({
    affinity: () => affinity,
    tree: {
      housekeeping: () => housekeeping.cpus,
      setHousekeeping(path, cpus) {
        assert.equal(path, '/c');
        assert.ok(housekeeping.cpus !== undefined, 'a cgroup that is not there is not made');
        counts.writes++;
        if (housekeeping.fails) throw new Error('EACCES');
        housekeeping.cpus = cpus;
      },
    },
    now: () => time.now,
    path: '/c',
    heldBefore,
    remember: (held) => void remembered.push(held),
  });
  const look = (): GuestThread[] =>
    [...names].map(([tid, name]) => {
      const allowed = CpuSet.fromWords(affinity.get(tid));
      return { tid, name, role: qemuThreadRole(name), allowed };
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
  const where = () =>
    Object.fromEntries(
      [...names.keys()].map((tid) => {
        const cpus = affinity.masks.get(tid) ?? CpuSet.EMPTY;
        return [tid, cpus.size > 64 ? 'all' : cpus.toString()];
      }),
    );
  return {
    affinity,
    housekeeping,
    remembered,
    time,
    names,
    add,
    look,
    where,
    pinning,
    get writes() {
      return counts.writes;
    },
    keep: (mask: string, changes = {}) => pinning.keep(vm(mask, changes), look()),
    release: () => pinning.release(look(), set(container)),
  };
}

const wantedOf = (outcome: { wanted: ReadonlyMap<number, CpuSet> } | undefined) =>
  Object.fromEntries([...(outcome?.wanted ?? [])].map(([tid, cpus]) => [tid, cpus.toString()]));

describe('the mask of one guest: vCPUs', () => {
  it('each is put on its entry, once, and the others stay', () => {
    const guest = guestOf(2);
    const first = guest.keep('1:2-3');
    assert.equal(first?.state, 'pinned');
    assert.equal(first.reason, undefined);
    assert.equal(first.moved, 2);
    assert.deepEqual(wantedOf(first), { 100: '1', 101: '2-3' });
    assert.deepEqual(first.pins.map(String).length, 2);
    assert.deepEqual(guest.where(), { 100: '1', 101: '2-3', 200: '0-7', 201: '0-7' });
    assert.deepEqual(guest.remembered, ['vcpus']);
    guest.affinity.sets.length = 0;
    assert.equal(guest.keep('1:2-3')?.moved, 0);
    assert.deepEqual(guest.affinity.sets, []);
  });

  it('one that someone else has moved is put back, and counted', () => {
    const guest = guestOf(2);
    guest.keep('1:2');
    guest.affinity.masks.set(101, set('5'));
    const outcome = guest.keep('1:2');
    assert.equal(outcome?.moved, 1);
    assert.equal(guest.where()[101], '2');
  });

  it('in their order, whatever order the threads are listed in', () => {
    const guest = guestOf(0);
    guest.add(110, 'CPU 1/KVM');
    guest.add(111, 'CPU 0/KVM');
    guest.keep('4:5');
    assert.deepEqual([guest.where()[111], guest.where()[110]], ['4', '5']);
  });

  it('together or not at all: one that the kernel refuses has all of them back where they were', () => {
    const guest = guestOf(2);
    guest.affinity.forbidden.add(101);
    const outcome = guest.keep('1:2');
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['refused', 'System', 0]);
    assert.match(outcome?.message ?? '', /sched_setaffinity/);
    assert.deepEqual([guest.where()[100], guest.where()[101]], ['0-7', '0-7']);
    assert.deepEqual(wantedOf(outcome), {});
    assert.deepEqual(outcome?.pins, []);
  });

  it('one that gets other CPUs than asked for is reported with those', () => {
    const guest = guestOf(2);
    guest.affinity.cpusetOf = (tid) => (tid === 101 ? set('2') : undefined);
    const outcome = guest.keep('1:2-3');
    assert.deepEqual([outcome?.state, outcome?.reason], ['unpinned', 'System']);
    assert.match(outcome?.message ?? '', /thread 101 .*\(it got 2\)$/);
  });
});

describe('the mask of one guest: what cannot be pinned', () => {
  it('refused before anything was pinned: nothing is moved', () => {
    const guest = guestOf(2);
    const outcome = guest.keep('20:21');
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['refused', 'HostCPUs', 0]);
    assert.deepEqual(guest.affinity.sets, []);
    assert.deepEqual(guest.remembered, []);
  });

  it('unpinned afterwards: vCPUs have every CPU back that their container allows, the others are left alone', () => {
    const guest = guestOf(2);
    guest.keep('1:2');
    guest.affinity.sets.length = 0;
    const outcome = guest.keep('1:2', { withheld: set('0-7') });
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['unpinned', 'Empty', 2]);
    assert.deepEqual(
      guest.affinity.sets.map((text) => text.split(' ')[0]),
      ['100', '101'],
    );
    assert.deepEqual([guest.where()[100], guest.where()[200]], ['all', '0-7']);
  });

  it('given back once: the next look moves only who is elsewhere', () => {
    const guest = guestOf(2);
    guest.affinity.cpusetOf = () => set('0-7');
    guest.keep('0-7:2');
    assert.equal(guest.keep('1:2', { withheld: set('0-7') })?.moved, 2);
    assert.equal(guest.keep('1:2', { withheld: set('0-7') })?.moved, 0);
    guest.affinity.masks.set(101, set('3'));
    assert.equal(guest.keep('1:2', { withheld: set('0-7') })?.moved, 1);
    // Pinned again, given back again: every one of them.
    guest.keep('0-7:2');
    assert.equal(guest.keep('1:2', { withheld: set('0-7') })?.moved, 2);
  });

  it('pinned to all CPUs of its container it is unpinned nevertheless', () => {
    const guest = guestOf(2);
    guest.keep('0-7:0-7');
    const outcome = guest.keep('20:21');
    assert.deepEqual([outcome?.state, outcome?.moved], ['unpinned', 2]);
  });

  it('the emulator’s cgroup is not touched for a mask of vCPUs', () => {
    const guest = guestOf(2);
    guest.housekeeping.cpus = set('7');
    guest.keep('1:2');
    guest.keep('20:21');
    guest.release();
    assert.equal(guest.writes, 0);
  });

  it('what is no refusal of the kernel is an error of the program', () => {
    const guest = guestOf(2);
    guest.affinity.set = () => {
      throw new TypeError('a mistake');
    };
    assert.throws(() => guest.keep('1:2'), /a mistake/);
  });

  it('what an agent without a record had pinned is unpinned, too: vCPUs elsewhere than in their container', () => {
    const guest = guestOf(2);
    guest.affinity.masks.set(100, set('5'));
    const outcome = guest.keep('20:21');
    assert.deepEqual([outcome?.state, outcome?.moved], ['unpinned', 1]);
    assert.equal(guest.where()[100], 'all');
    const other = guestOf(2);
    other.affinity.masks.set(200, set('5'));
    assert.deepEqual([other.keep('20:21')?.state, other.where()[200]], ['refused', '5']);
  });

  it('what an agent with a record had pinned is unpinned, wherever it is', () => {
    const guest = guestOf(2, '0-7', 'vcpus');
    const outcome = guest.keep('20:21');
    assert.deepEqual([outcome?.state, outcome?.moved], ['unpinned', 2]);
  });

  it('vCPU threads that are missing: waited for two seconds, then refused', () => {
    const guest = guestOf(0);
    assert.equal(guest.keep('1:2'), undefined);
    guest.time.now += 1999;
    assert.equal(guest.keep('1:2'), undefined);
    guest.time.now += 1;
    const outcome = guest.keep('1:2');
    assert.deepEqual([outcome?.state, outcome?.reason], ['refused', 'Threads']);
    const whole = guestOf(0);
    assert.equal(whole.keep('1'), undefined);
    whole.time.now += 2000;
    assert.match(whole.keep('1')?.message ?? '', /no vCPU threads/);
  });

  it('the wait begins again after the threads were all there', () => {
    const guest = guestOf(1);
    assert.equal(guest.keep('1:2'), undefined);
    guest.time.now += 1500;
    guest.add(101, 'CPU 1/KVM');
    assert.equal(guest.keep('1:2')?.state, 'pinned');
    guest.names.delete(101);
    guest.time.now += 1500;
    assert.equal(guest.keep('1:2'), undefined);
    guest.time.now += 1999;
    assert.equal(guest.keep('1:2'), undefined);
    guest.time.now += 1;
    assert.equal(guest.keep('1:2')?.state, 'unpinned');
  });

  it('other reasons are not waited for', () => {
    const guest = guestOf(1);
    assert.equal(guest.keep('20')?.reason, 'HostCPUs');
  });
});

describe('the mask of one guest: fewer or more vCPUs than entries', () => {
  it('in a migration’s target an entry waits for its vCPU; at first it may be a vCPU that starts', () => {
    const guest = guestOf(1);
    assert.equal(guest.keep('1:2', { mayBePlugged: true }), undefined);
    guest.time.now += 2000;
    const outcome = guest.keep('1:2', { mayBePlugged: true });
    assert.deepEqual([outcome?.state, outcome?.reason], ['pinned', 'OtherVCPUs']);
    assert.match(outcome?.message ?? '', /entries for 2 vCPUs, and the VM has 1/);
    assert.equal(guest.where()[100], '1');
    // The wait is over once: it does not begin again at each look.
    assert.equal(guest.keep('1:2', { mayBePlugged: true })?.state, 'pinned');
  });

  it('a vCPU beyond the entries is there to stay: nothing is waited for, and the wait before it is over', () => {
    const guest = guestOf(3);
    const outcome = guest.keep('1:2', { mayBePlugged: true });
    assert.deepEqual([outcome?.state, outcome?.reason], ['pinned', 'OtherVCPUs']);
    assert.equal(guest.where()[100], '1');
  });
});

describe('the mask of one guest: `all` in its place', () => {
  it('pins nothing, says so, and wants what it holds in the container', () => {
    const guest = guestOf(2);
    const outcome = guest.keep('20:21', { fixMismatch: true });
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.pins], ['pinned', 'FellBack', []]);
    assert.match(outcome?.message ?? '', /using "all" instead/);
    assert.deepEqual(wantedOf(outcome), { 100: '0-7', 101: '0-7' });
    assert.equal(outcome?.moved, 0);
  });

  it('what was pinned before is given back', () => {
    const guest = guestOf(2);
    guest.keep('1:2');
    const outcome = guest.keep('20:21', { fixMismatch: true });
    assert.equal(outcome?.moved, 2);
    assert.deepEqual([guest.where()[100], guest.where()[101]], ['all', 'all']);
  });
});

describe('the mask of one guest: for the whole VM', () => {
  it('every thread is put there, and the cgroup of the emulator is opened first', () => {
    const guest = guestOf(2);
    guest.housekeeping.cpus = set('7');
    const outcome = guest.keep('2-3');
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['pinned', undefined, 4]);
    assert.deepEqual(guest.where(), { 100: '2-3', 101: '2-3', 200: '2-3', 201: '2-3' });
    assert.deepEqual(wantedOf(outcome), { 100: '2-3', 101: '2-3', 200: '2-3', 201: '2-3' });
    assert.equal(String(guest.housekeeping.cpus), '2-3');
    assert.deepEqual(guest.remembered, ['vm']);
    guest.affinity.sets.length = 0;
    assert.equal(guest.keep('2-3')?.moved, 0);
    assert.deepEqual(guest.affinity.sets, []);
    assert.equal(guest.writes, 1);
  });

  it('without that cgroup none is written', () => {
    const guest = guestOf(1);
    guest.keep('2-3');
    assert.equal(guest.writes, 0);
  });

  it('what the kernel leaves elsewhere is named and not wanted there; what has ended is not', () => {
    const guest = guestOf(1);
    guest.affinity.forbidden.add(201);
    const outcome = guest.keep('2-3');
    assert.deepEqual([outcome?.state, outcome?.reason, outcome?.moved], ['pinned', 'ThreadsLeft', 2]);
    assert.match(outcome?.message ?? '', /leaves 1 threads .* 201 \(qemu-kvm\) on 0-7$/);
    assert.deepEqual(wantedOf(outcome), { 100: '2-3', 200: '2-3' });
  });

  it('a cgroup that cannot be written confines as before, and stops nothing', () => {
    const guest = guestOf(1);
    guest.housekeeping.cpus = set('7');
    guest.housekeeping.fails = true;
    assert.equal(guest.keep('2-3')?.state, 'pinned');
    assert.equal(String(guest.housekeeping.cpus), '7');
  });

  it('that becomes one for vCPUs: the other threads are given back, the vCPUs stay pinned', () => {
    const guest = guestOf(2);
    guest.keep('2-3');
    const outcome = guest.keep('1:2');
    assert.deepEqual(guest.where(), { 100: '1', 101: '2', 200: 'all', 201: 'all' });
    assert.deepEqual(wantedOf(outcome), { 100: '1', 101: '2' });
    assert.deepEqual(guest.remembered.at(-1), 'vcpus');
    // From then on the others are not its own.
    guest.affinity.sets.length = 0;
    assert.equal(guest.keep('1:2')?.moved, 0);
    assert.deepEqual(guest.affinity.sets, []);
  });

  it('taken away: all threads and the emulator’s cgroup have the container’s CPUs', () => {
    const guest = guestOf(1);
    guest.housekeeping.cpus = set('7');
    guest.keep('2-3');
    assert.equal(guest.release(), 3);
    assert.deepEqual(guest.where(), { 100: 'all', 200: 'all', 201: 'all' });
    assert.equal(String(guest.housekeeping.cpus), '0-7');
    assert.deepEqual(guest.remembered, ['vm', undefined]);
  });
});

describe('the mask of one guest: taken away', () => {
  it('vCPUs are given back, once', () => {
    const guest = guestOf(2);
    guest.keep('1:2');
    assert.equal(guest.release(), 2);
    assert.deepEqual(guest.where(), { 100: 'all', 101: 'all', 200: '0-7', 201: '0-7' });
    assert.deepEqual(guest.remembered, ['vcpus', undefined]);
    guest.affinity.sets.length = 0;
    assert.equal(guest.release(), 0);
    assert.deepEqual(guest.affinity.sets, []);
  });

  it('where none was applied nothing is moved', () => {
    const guest = guestOf(2);
    guest.affinity.masks.set(100, set('3'));
    assert.equal(guest.release(), 0);
    assert.equal(guest.where()[100], '3');
    assert.deepEqual(guest.remembered, [undefined]);
  });

  it('what an agent before this one held is given back', () => {
    const guest = guestOf(2, '0-7', 'vm');
    assert.equal(guest.release(), 4);
  });

  it('a mask that is refused later finds nothing pinned', () => {
    const guest = guestOf(2);
    guest.affinity.cpusetOf = () => set('0-7');
    guest.keep('1:2');
    guest.release();
    assert.equal(guest.keep('20:21')?.state, 'refused');
  });
});
