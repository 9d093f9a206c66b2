import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { launcherPins } from '../../../model/launcher/pins.ts';
import { housekeeping, ioThreadPins, launcherCells, qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';

/** 4 cores of 2 threads in each of two NUMA nodes: CPUs n and n + 8 form a core. */
const host = createHost({
  cells: ['0-3,8-11', '4-7,12-15'].map((cpus, id) => ({ id, cpus })),
  cores: Array.from({ length: 8 }, (_, n) => `${n},${n + 8}`),
});
const cells = launcherCells(host);
const set = (text: string) => CpuSet.parse(text);
describe('roles of QEMU threads by name', () => {
  for (const [name, role] of [
    ['CPU 0/KVM', { kind: 'vcpu', index: 0 }],
    ['CPU 127/TCG', { kind: 'vcpu', index: 127 }],
    ['IO iothread12', { kind: 'io' }],
    ['IO mon_iothread', { kind: 'emulator' }],
    ['qemu-system-x86', { kind: 'emulator' }],
    ['CPU 1/KVM2', { kind: 'emulator' }],
  ] as const) {
    it(`${name}: ${JSON.stringify(role)}`, () => assert.deepEqual(qemuThreadRole(name), role));
  }
});
describe('the pins of IO threads', () => {
  const ioPins = (container: string, vcpus: readonly number[], ioThreads: number, emulator: string) =>
    ioThreadPins({ container: set(container), host, vcpus, ioThreads, emulator: set(emulator) });

  it('match the launcher’s algorithm for every guest and cpuset', () => {
    const cpusets = fc.uniqueArray(fc.nat(15), { minLength: 3, maxLength: 16 }).map((ids) => CpuSet.of(ids));
    fc.assert(
      fc.property(
        cpusets,
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom(1, 2),
        fc.integer({ min: 1, max: 4 }),
        (container, cores, threads, ioThreads) => {
          fc.pre(container.size >= cores * threads + ioThreads + 1);
          const guest = { sockets: 1, cores, threads };
          const pins = launcherPins({ cpuset: container, cells, guest, strict: false, ioThreads, emulator: 1 });
          const { vcpus } = pins;
          const answer = ioThreadPins({ container, host, vcpus, ioThreads, emulator: CpuSet.of(pins.emulator) });
          // Two guests that look alike may have different IO threads: then the answer is undefined, but never wrong.
          if (answer !== undefined) assert.deepEqual(answer, pins.ioThreads);
        },
      ),
    );
  });

  it('are determined for guests with one or two threads per core', () => {
    // Two threads: the whole core first, then the fragment.
    assert.deepEqual(ioPins('0-2,9-10', [1, 9], 1, '2'), [0]);
    assert.deepEqual(ioPins('0-2,9-10', [0, 1], 1, '2'), [9]);
    assert.deepEqual(ioPins('0-3', [0], 1, '2'), [1]);
    assert.deepEqual(ioPins('1-3,9-11', [1, 9], 2, '3,11'), [2, 10]);
  });

  for (const [what, pins] of [
    ['the two algorithms disagree', ioPins('1-3,9-10', [1, 9], 1, '')],
    ['other vCPU pins are visible', ioPins('2-3,10-11', [2, 3], 1, '11')],
    ['vCPUs are in another order', ioPins('2-3,10-11', [10, 2], 1, '11')],
    ['a CPU of the emulator differs', ioPins('1-3,9-11', [1, 9], 2, '3,0')],
    ['there is no room for so many', ioPins('2-3,10-11', [2, 10], 9, '11')],
  ] as const) {
    it(`are unknown if ${what}`, () => assert.equal(pins, undefined));
  }
});
describe('housekeeping', () => {
  const of = (container: string, vcpus: string, ioThreads = '') => {
    const cpus = housekeeping({ container: set(container), vcpus: set(vcpus), ioThreads: set(ioThreads) });
    return cpus && [`${cpus.emulator}`, `${cpus.cgroup}`];
  };

  for (const [what, cpus, expected] of [
    ['M8: is both threads of the padded core', of('1-5,17-21', '1-4,17-20'), ['5,21', '5,21']],
    ['M8: stays {20} if the last vCPU has the other thread', of('1-4,17-20', '1-4,17-19'), ['20', '20']],
    // These stay in the cgroup for their own threads.
    ['M8: excludes the CPUs of a supplemental pool', of('1-6,17-22', '1-4,17-20', '5,21'), ['6,22', '5-6,21-22']],
    [
      'shares with IO threads on the emulator’s CPU if there is no other',
      of('1-4,17-20', '1-4,17-19', '20'),
      ['20', '20'],
    ],
    ['is empty if vCPUs have every CPU', of('1-4', '1-4', '1'), undefined],
  ] as const)
    it(what, () => assert.deepEqual(cpus, expected));
});
