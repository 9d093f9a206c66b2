import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import type { LauncherCells } from './pin-pool.ts';
import { LauncherPinError, launcherPins } from './pins.ts';

/** Observations about a guest with dedicated CPUs whose IO threads have lost their pins. */
export interface UnpinnedIo {
  readonly container: CpuSet;
  readonly host: Host;
  /** CPU of each vCPU, by index. */
  readonly vcpus: readonly number[];
  readonly ioThreads: number;
  /** CPUs of its housekeeping cgroup, which virt-handler sets to the emulator's pin. */
  readonly emulator: CpuSet;
}

/** KubeVirt's guests have at most two threads per core. */
const GUEST_THREADS = [1, 2];

/**
 * The CPU of each thread of a supplemental IO thread pool, in the pool's order, by the launcher's own algorithm: some
 * guest topology must result in exactly the observed pins of vCPUs and emulator. Undefined if none does, as for IO
 * threads without such a pool, or if two contradict each other.
 */
export function ioThreadPins({
  container,
  host,
  vcpus,
  ioThreads,
  emulator,
}: UnpinnedIo): readonly number[] | undefined {
  const cells = launcherCells(host);
  const answers = new Map<string, readonly number[]>();
  for (const threads of GUEST_THREADS) {
    const guest = { sockets: 1, cores: vcpus.length / threads, threads };
    if (!Number.isInteger(guest.cores)) continue;
    try {
      // A strict guest that is placed at all is placed in the same way.
      const pins = launcherPins({ cpuset: container, cells, guest, strict: false, ioThreads, emulator: emulator.size });
      const isSeen = areEqual(pins.vcpus, vcpus) && pins.emulator.every((cpu) => emulator.has(cpu));
      if (isSeen) answers.set(pins.ioThreads.join(), pins.ioThreads);
    } catch (error) {
      if (!(error instanceof LauncherPinError)) throw error;
    }
  }
  return answers.size === 1 ? [...answers.values()][0] : undefined;
}

/**
 * A host in virt-handler's description: cells in order, and in each the CPUs in order, with the threads of their cores.
 */
export function launcherCells({ cells, cores }: Host): LauncherCells {
  const siblings = new Map(cores.flatMap((core) => [...core].map((cpu) => [cpu, core.toArray()] as const)));
  return cells.map(({ cpus }) => [...cpus].map((cpu) => ({ cpu, siblings: siblings.get(cpu)! })));
}

function areEqual(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((cpu, i) => cpu === b[i]);
}
