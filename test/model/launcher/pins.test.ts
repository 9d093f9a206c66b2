import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { launcherPins } from '../../../model/launcher/pins.ts';
import { launcherCells } from '../../../model/launcher/qemu-threads.ts';

/** 4 cores of 2 threads in each of two NUMA nodes: CPUs n and n + 8 form a core. */
const cells = launcherCells(
  createHost({
    cells: ['0-3,8-11', '4-7,12-15'].map((cpus, id) => ({ id, cpus })),
    cores: Array.from({ length: 8 }, (_, n) => `${n},${n + 8}`),
  }),
);

/** KubeVirt's own cases are in kubevirt-pinning-cases.json. */
describe('the launcher’s pins', () => {
  function pins(
    cpuset: string,
    cores: number,
    threads: number,
    more: Partial<Parameters<typeof launcherPins>[0]> = {},
  ) {
    const guest = { sockets: 1, cores, threads };
    return launcherPins({ cpuset: CpuSet.parse(cpuset), cells, guest, strict: false, ...more });
  }
  const SPANS = 'no CPUs left for 1 of 1 guest cores of 2 threads without a guest core that spans NUMA cells';
  for (const [message, request] of [
    [SPANS, () => pins('0,4', 1, 2, { strict: true })],
    ['a guest core cannot have 0 threads', () => pins('0', 1, 0)],
    ['no CPUs left for 1 of 3 IO threads', () => pins('0-2', 1, 1, { ioThreads: 3 })],
    ['no CPUs left for 3 of 4 emulator CPUs', () => pins('0-2', 1, 1, { ioThreads: 1, emulator: 4 })],
  ] as const)
    it(`are refused: ${message}`, () => assert.throws(request, { name: 'LauncherPinError', message }));
});
