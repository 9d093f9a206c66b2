import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { CpuSet } from '../../model/cpu-set.ts';
import {
  type LauncherCells,
  LauncherPinError,
  type LauncherPinRequest,
  type LauncherPins,
  launcherPins,
} from '../../model/launcher/pins.ts';
import { housekeeping } from '../../model/launcher/qemu-threads.ts';
import { run as runPinCases } from '../vectors/kubevirt-pinning.ts';

/** One NUMA node with 16 cores; the sibling of CPU n is n + 16. */
const smt2: LauncherCells = [
  Array.from({ length: 16 }, (_, core) => ({ cpu: core, siblings: [core, core + 16] })).flatMap((first) => [
    first,
    { ...first, cpu: first.cpu + 16 },
  ]),
];

const set = (text: string) => CpuSet.parse(text);
const setOf = (ids: readonly number[]) => CpuSet.of(ids);

function pins(cpuset: string, cores: number, threads: number, more: Partial<LauncherPinRequest> = {}): LauncherPins {
  const guest = { sockets: 1, cores, threads };
  return launcherPins({ cpuset: set(cpuset), cells: smt2, guest, strict: false, emulator: 1, ...more });
}

function emulatorCpus(container: string, vcpus: readonly number[], ioThreads: readonly number[]): string | undefined {
  const request = { container: set(container), vcpus: setOf(vcpus), ioThreads: setOf(ioThreads) };
  return housekeeping(request)?.emulator.toString();
}

function kept(cpuset: string, { vcpus, ioThreads }: LauncherPins): string | undefined {
  return emulatorCpus(cpuset, vcpus, ioThreads);
}

describe('the launcher’s pins', () => {
  it('match KubeVirt’s own tests', () => {
    const cases: unknown = JSON.parse(
      readFileSync(join(import.meta.dirname, '../vectors/kubevirt-pinning-cases.json'), 'utf8'),
    );
    const outcome = runPinCases(cases, () => undefined);
    assert.deepEqual(outcome.failures, []);
    assert.ok(outcome.ran >= 44);
  });

  it('leave the padding CPU unused: 4 cores of 2 threads on 10 CPUs', () => {
    const { vcpus, emulator, spare } = pins('1-5,17-21', 4, 2);
    assert.deepEqual(vcpus, [1, 17, 2, 18, 3, 19, 4, 20]);
    assert.deepEqual(emulator, [5]);
    assert.deepEqual(spare, [21]);
  });

  it('put the emulator on the last vCPU’s core if there is no other: 7 cores of 1 thread on 8 CPUs', () => {
    const { vcpus, emulator, spare } = pins('1-4,17-20', 7, 1);
    assert.deepEqual(vcpus, [1, 17, 2, 18, 3, 19, 4]);
    assert.deepEqual(emulator, [20]);
    assert.deepEqual(spare, []);
  });

  it('serve supplemental IO threads before the emulator', () => {
    const { ioThreads, emulator, spare } = pins('1-6,17-22', 4, 2, { ioThreads: 2 });
    assert.deepEqual({ ioThreads, emulator, spare }, { ioThreads: [5, 21], emulator: [6], spare: [22] });
  });

  it('name the threads without a CPU', () => {
    assert.throws(
      () => pins('1-3,17-19', 4, 2),
      (error) => error instanceof LauncherPinError && /1 of 4 guest cores/.test(error.message),
    );
    assert.throws(() => pins('1-4,17-20', 4, 2), /1 of 1 emulator CPUs/);
    assert.throws(() => pins('1-4,17-20', 4, 2, { emulator: 0, ioThreads: 1 }), /1 of 1 IO threads/);
    assert.throws(() => pins('1', 1, 0), LauncherPinError);
  });

  it('use each CPU of the cpuset once, and no other', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(31), { minLength: 1 }),
        fc.integer({ min: 1, max: 12 }),
        fc.constantFrom(1, 2),
        fc.nat(3),
        (cpuset, cores, threads, ioThreads) => {
          const request = {
            cpuset,
            cells: smt2,
            guest: { sockets: 1, cores, threads },
            strict: false,
            ioThreads,
            emulator: 1,
          };
          if (cpuset.length < cores * threads + ioThreads + 1) {
            assert.throws(() => launcherPins(request), LauncherPinError);
            return;
          }
          const { vcpus, ioThreads: io, emulator, spare } = launcherPins(request);
          assert.deepEqual([vcpus.length, io.length, emulator.length], [cores * threads, ioThreads, 1]);
          assert.deepEqual(
            [...vcpus, ...io, ...emulator, ...spare].sort((a, b) => a - b),
            cpuset.sort((a, b) => a - b),
          );
        },
      ),
    );
  });
});

describe('housekeeping', () => {
  it('M8: is both threads of the padded core, {5,21}', () => {
    assert.equal(kept('1-5,17-21', pins('1-5,17-21', 4, 2)), '5,21');
  });

  it('M8: stays {20} if the last vCPU has the other thread', () => {
    assert.equal(kept('1-4,17-20', pins('1-4,17-20', 7, 1)), '20');
  });

  it('M8: excludes the CPUs of a supplemental pool, which stay in the cgroup for their own threads', () => {
    const found = pins('1-6,17-22', 4, 2, { ioThreads: 2 });
    const answer = housekeeping({
      container: set('1-6,17-22'),
      vcpus: setOf(found.vcpus),
      ioThreads: setOf(found.ioThreads),
    });
    assert.equal(answer?.emulator.toString(), '6,22');
    assert.equal(answer?.cgroup.toString(), '5-6,21-22');
  });

  it('shares with IO threads that KubeVirt put on the emulator’s CPU if there is no other', () => {
    assert.equal(emulatorCpus('1-4,17-20', [1, 2, 3, 4, 17, 18, 19], [20]), '20');
    assert.equal(emulatorCpus('1-5,17-21', [1, 2, 3, 4, 17, 18, 19, 20], [5]), '21');
  });

  it('is empty if vCPUs have every CPU', () => {
    assert.equal(emulatorCpus('1-4', [1, 2, 3, 4], [1]), undefined);
  });

  it('stays within the container, never includes a vCPU, and is never empty', () => {
    const some = fc.uniqueArray(fc.nat(40));
    fc.assert(
      fc.property(some, some, some, (container, vcpus, io) => {
        const [all, taken] = [setOf(container), setOf(vcpus)];
        const answer = housekeeping({ container: all, vcpus: taken, ioThreads: setOf(io) });
        if (answer === undefined) return assert.ok(all.isSubsetOf(taken));
        assert.ok(!answer.emulator.isEmpty);
        assert.ok(answer.emulator.isSubsetOf(all.minus(taken)));
        assert.ok(answer.emulator.isSubsetOf(answer.cgroup));
        assert.ok(answer.cgroup.isSubsetOf(all));
      }),
    );
  });
});
