import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { SyscallError } from '../../../native/affinity.ts';
import { findGuest } from '../../../node-agent/vm-pinning/guest.ts';
import { set } from '../support.ts';
import { machine } from './stage.ts';

describe('the QEMU process of a launcher', () => {
  it('is the one with vCPU threads, wherever it is listed, or the first one before vCPUs exist', () => {
    const { parts, add } = machine();
    add(1, 'virt-launcher', { 1: 'CPU 0/KVM' });
    add(2, 'qemu-kvm', { 2: 'qemu-kvm' });
    add(3, 'qemu-system-x86', { 3: 'qemu-system-x86', 30: 'CPU 0/KVM' });
    assert.equal(findGuest([1, 2, 3], parts)?.pid, 3);
    const early = findGuest([1, 2], parts);
    assert.deepEqual([early?.pid, early?.isReady], [2, false]);
    for (const pid of [1, 9]) assert.equal(findGuest([pid], parts), undefined);
    const ending = { ...parts, processes: { ...parts.processes, start: () => undefined } };
    assert.equal(findGuest([2], ending), undefined, 'it ends during the search');
  });

  it('has live threads with roles and allowed CPUs', () => {
    const { parts, add, affinity, processes } = machine();
    add(1, 'qemu', { 1: 'qemu', 10: 'CPU 0/KVM', 11: 'IO iothread1', 12: 'gone' });
    affinity.masks.set(10, set('3'));
    affinity.masks.delete(12);
    // The last one ends before its name is read.
    const list = (pid: number) => [...parts.threads.list(pid), 13];
    const guest = findGuest([1], { ...parts, threads: { ...parts.threads, list } });
    const threads = guest?.list().map(({ tid, name, role, allowed }) => `${tid} ${name}: ${role.kind} on ${allowed}`);
    const expected = ['1 qemu: emulator on 0-7', '10 CPU 0/KVM: vcpu on 3', '11 IO iothread1: io on 0-7'];
    assert.deepEqual(threads, expected);
    assert.equal(guest?.isReady, true);
    processes.get(1)?.threads.delete(10);
    guest?.list();
    assert.equal(guest?.isReady, false);
  });

  it('is alive while its process is the same, by its quick identity or by its start', () => {
    const { parts, add, processes } = machine();
    add(1, 'qemu', { 1: 'qemu' });
    const guest = findGuest([1], parts);
    const process = processes.get(1);
    assert.ok(process);
    process.identity = 77;
    assert.equal(guest?.isAlive(), true);
    process.identity = 78;
    process.start = 5;
    assert.equal(guest?.isAlive(), false);
  });

  it('moves only its own threads, and none after another process has its pid', () => {
    const { parts, add, affinity, processes } = machine();
    add(1, 'qemu', { 1: 'qemu', 10: 'CPU 0/KVM' });
    affinity.masks.set(99, set('0-7'));
    const guest = findGuest([1], parts);
    guest?.affinity().set(10, set('3').toWords());
    assert.equal(String(affinity.masks.get(10)), '3');
    const isGone = (error: unknown) => error instanceof SyscallError && error.code === 'ESRCH';
    assert.throws(() => guest?.affinity().set(99, set('3').toWords()), isGone);
    processes.set(1, { name: 'kubelet', start: 1, identity: 2, threads: new Map([[10, 'kubelet']]) });
    assert.throws(() => guest?.affinity().set(10, set('4').toWords()), isGone);
    assert.equal(String(affinity.masks.get(10)), '3');
    assert.equal(String(CpuSet.fromWords(guest?.affinity().get(10) ?? new Uint32Array(0))), '3');
  });
});
