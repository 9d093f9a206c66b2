import assert from 'node:assert/strict';
import fc from 'fast-check';
import { hostPins } from '../../model/cpu-mask/host-pins.ts';
import { parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { launcherPins } from '../../model/launcher/pins.ts';
import { ioThreadPins, launcherCells, qemuThreadRole } from '../../model/launcher/qemu-threads.ts';

const set = (text: string) => CpuSet.parse(text);

describe('roles of QEMU threads by name', () => {
  for (const [name, role] of [
    ['CPU 0/KVM', { kind: 'vcpu', index: 0 }],
    ['CPU 127/TCG', { kind: 'vcpu', index: 127 }],
    ['IO iothread12', { kind: 'io' }],
    ['IO mon_iothread', { kind: 'emulator' }],
    ['ALL CPUs/TCG', { kind: 'emulator' }],
    ['qemu-system-x86', { kind: 'emulator' }],
    ['CPU x/KVM', { kind: 'emulator' }],
    ['CPU 1/KVM2', { kind: 'emulator' }],
    ['vhost-1234', { kind: 'emulator' }],
  ] as const) {
    it(`${name}: ${JSON.stringify(role)}`, () => assert.deepEqual(qemuThreadRole(name), role));
  }
});

describe('the pins of IO threads', () => {
  /** 16 cores of 2 threads in two NUMA nodes: CPUs n and n + 16 form a core. */
  const host = createHost({
    cells: [
      { id: 0, cpus: '0-7,16-23' },
      { id: 1, cpus: '8-15,24-31' },
    ],
    cores: Array.from({ length: 16 }, (_, n) => `${n},${n + 16}`),
  });

  it('match the launcher’s algorithm for every guest and cpuset', () => {
    const cpusets = fc.uniqueArray(fc.nat(31), { minLength: 4, maxLength: 32 }).map((ids) => CpuSet.of(ids));
    fc.assert(
      fc.property(
        cpusets,
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom(1, 2),
        fc.integer({ min: 1, max: 4 }),
        (...of) => {
          const [container, cores, threads, ioThreads] = of;
          fc.pre(container.size >= cores * threads + ioThreads + 1);
          const guest = { sockets: 1, cores, threads };
          const cells = launcherCells(host);
          const pins = launcherPins({ cpuset: container, cells, guest, strict: false, ioThreads, emulator: 1 });
          const seen = { container, host, vcpus: pins.vcpus, ioThreads, emulator: CpuSet.of(pins.emulator) };
          const answer = ioThreadPins(seen);
          // Two guests that look alike may have different IO threads: then the answer is undefined, but never wrong.
          if (answer !== undefined) assert.deepEqual(answer, pins.ioThreads);
        },
      ),
    );
  });

  it('are {4, 5} with vCPUs on {2, 3} and the emulator on 6, in CPUs 2 to 7', () => {
    const small = createHost({ cells: [{ id: 0, cpus: '0-7' }], cores: ['0-1', '2-3', '4-5', '6-7'] });
    const seen = { container: set('2-7'), host: small, vcpus: [2, 3], ioThreads: 2 };
    assert.deepEqual(ioThreadPins({ ...seen, emulator: set('6') }), [4, 5]);
    assert.equal(ioThreadPins({ ...seen, emulator: set('4') }), undefined, 'no launcher pins the emulator there');
    assert.equal(ioThreadPins({ ...seen, ioThreads: 9, emulator: set('6') }), undefined, 'more than there is room for');
  });
});

describe('pins on a host', () => {
  const vm = {
    fixMismatch: false,
    indexes: [0, 1],
    online: set('0-7'),
    container: set('0-5'),
    withheld: set('0,4'),
    mayBePlugged: false,
  };
  for (const [mask, more, answer] of [
    ['1:3', {}, ['0: 1', '1: 3']],
    ['0-7', {}, ['0: 1-3,5', '1: 1-3,5']],
    ['all:2', {}, ['0: 1-3,5', '1: 2']],
    ['0:1', {}, 'Empty'],
    ['1:6', {}, 'Empty'],
    ['1:8', {}, 'HostCPUs'],
    ['1:8', { fixMismatch: true }, []],
    ['1:2:3', {}, 'Threads'],
    ['1', { indexes: [0, 2] }, 'Threads'],
    ['1:8', { fixMismatch: true, indexes: [0] }, 'Threads'],
    ['1:2', { indexes: [0, 2], mayBePlugged: true }, 'Threads'],
  ] as const) {
    it(`${mask} ${JSON.stringify(more)}: ${answer}`, () => {
      const found = hostPins({ ...vm, ...more, mask: parseMask(mask) });
      const text = found.kind === 'pin' ? found.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`) : found.reason;
      assert.deepEqual(text, answer);
    });
  }

  const counts: [string, number, string[], RegExp | undefined][] = [
    ['1:3', 2, ['0: 1', '1: 3'], undefined],
    ['2', 3, ['0: 2', '1: 2', '2: 2'], undefined],
    [
      '1:3',
      4,
      ['0: 1', '1: 3', '2: 1-3,5', '3: 1-3,5'],
      /entries for 2 vCPUs, and the VM has 4: the others run on any of its CPUs/,
    ],
    ['1:2:3', 2, ['0: 1', '1: 2'], /entries for 3 vCPUs, and the VM has 2: the other entries wait/],
    // The entry that names a reserved CPU waits for its vCPU, and only then refuses the VM.
    ['1:0', 1, ['0: 1'], /the other entries wait/],
  ];
  for (const [mask, vcpus, pins, says] of counts) {
    it(`${mask} for ${vcpus} vCPUs after a migration: ${pins.join('; ')}`, () => {
      const indexes = Array.from({ length: vcpus }, (_, index) => index);
      const found = hostPins({ ...vm, indexes, mask: parseMask(mask), mayBePlugged: true });
      assert.ok(found.kind === 'pin');
      assert.deepEqual(
        found.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`),
        pins,
      );
      if (says === undefined) assert.equal(found.otherCount, undefined);
      else assert.match(found.otherCount?.message ?? '', says);
    });
  }
});
