import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import {
  type LauncherCells,
  LauncherPinError,
  type LauncherPinRequest,
  launcherPins,
} from '../../../model/launcher/pins.ts';
import { launcherCells } from '../../../model/launcher/qemu-threads.ts';

/** One NUMA node with 16 cores; the sibling of CPU n is n + 16. */
const smt2: LauncherCells = launcherCells(
  createHost({
    cells: [{ id: 0, cpus: '0-31' }],
    cores: Array.from({ length: 16 }, (_, core) => `${core},${core + 16}`),
  }),
);
/** 4 cores of 2 threads in each of two NUMA nodes: CPUs n and n + 8 form a core. */
const twoCells = launcherCells(
  createHost({
    cells: [
      { id: 0, cpus: '0-3,8-11' },
      { id: 1, cpus: '4-7,12-15' },
    ],
    cores: Array.from({ length: 8 }, (_, n) => `${n},${n + 8}`),
  }),
);

function pins(cpuset: string, cores: number, threads: number, more: Partial<LauncherPinRequest> = {}) {
  const guest = { sockets: 1, cores, threads };
  return launcherPins({ cpuset: CpuSet.parse(cpuset), cells: smt2, guest, strict: false, ...more });
}

/** KubeVirt's own cases are in kubevirt-pinning-cases.json. */
describe('the launcher’s pins', () => {
  it('leave the padding CPU unused: 4 cores of 2 threads on 10 CPUs', () =>
    assert.deepEqual(pins('1-5,17-21', 4, 2, { emulator: 1 }), {
      vcpus: [1, 17, 2, 18, 3, 19, 4, 20],
      ioThreads: [],
      emulator: [5],
      spare: [21],
    }));

  for (const [message, request] of [
    [
      'no CPUs left for 1 of 1 guest cores of 2 threads without a guest core that spans NUMA cells',
      () => pins('0,4', 1, 2, { cells: twoCells, strict: true }),
    ],
    ['no CPUs left for 1 of 3 guest cores of 2 threads', () => pins('0-1,4,8-9', 3, 2, { cells: twoCells })],
    ['no CPUs left for 3 of 3 guest cores of 2 threads', () => pins('0', 3, 2)],
    ['a guest core cannot have 0 threads', () => pins('0', 1, 0)],
    ['no CPUs left for 1 of 3 IO threads', () => pins('0-2', 1, 1, { ioThreads: 3 })],
    ['no CPUs left for 3 of 4 emulator CPUs', () => pins('0-2', 1, 1, { ioThreads: 1, emulator: 4 })],
  ] as const) {
    it(`are refused: ${message}`, () =>
      assert.throws(request, (error: Error) => error instanceof LauncherPinError && error.message === message));
  }
});
