import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { type LauncherCells, LauncherPinError, launcherPins } from './pins.ts';

export type QemuThreadRole =
  | { readonly kind: 'vcpu'; readonly index: number }
  | { readonly kind: 'io' }
  /** All other threads: the main thread, workers, the monitor. */
  | { readonly kind: 'emulator' };

const EMULATOR: QemuThreadRole = Object.freeze({ kind: 'emulator' });
const IO: QemuThreadRole = Object.freeze({ kind: 'io' });

/** QEMU's own event loop for monitors; it is an IO thread only in its implementation. */
const MONITOR = 'IO mon_iothread';

/**
 * From its name with debug-threads=on, which libvirt sets: `CPU 3/KVM`, `CPU 3/TCG`, `IO iothread1`; the kernel keeps
 * 15 characters. Source: QEMU, accel/kvm/kvm-accel-ops.c, accel/tcg/tcg-accel-ops-mttcg.c, iothread.c.
 */
export function qemuThreadRole(name: string): QemuThreadRole {
  const index = /^CPU ([0-9]+)\/(?:KVM|TCG)$/.exec(name)?.[1];
  if (index !== undefined) return { kind: 'vcpu', index: Number(index) };
  return name.startsWith('IO ') && name !== MONITOR ? IO : EMULATOR;
}

/**
 * All CPUs of the container without a pinned vCPU or IO thread, so that the CPU added for whole cores is used; else
 * those of the IO threads, which then share them. Undefined if vCPUs have every CPU: the emulator is not isolated.
 * @param cpus the container's cpuset, and the pins; those of IO threads are empty if they are not pinned
 * @returns `cgroup`: virt-handler moves every thread except vCPUs into it, so it contains the pins of the IO threads
 */
export function housekeeping(cpus: Readonly<Record<'container' | 'vcpus' | 'ioThreads', CpuSet>>) {
  const { container, vcpus, ioThreads } = cpus;
  const free = container.minus(vcpus);
  if (free.isEmpty) return undefined;
  const alone = free.minus(ioThreads);
  const emulator = alone.isEmpty ? free : alone;
  return { emulator, cgroup: emulator.union(ioThreads.intersect(container)) };
}

/** A guest with dedicated CPUs whose IO threads have lost their pins. */
interface UnpinnedIo {
  readonly container: CpuSet;
  readonly host: Host;
  readonly vcpus: readonly number[];
  readonly ioThreads: number;
  /** CPUs of its housekeeping cgroup, which virt-handler sets to the emulator's pin. */
  readonly emulator: CpuSet;
}

/** KubeVirt's guests have at most two threads per core. */
const GUEST_THREADS = [1, 2];

/**
 * The pins of a supplemental IO thread pool, in its order, by the launcher's algorithm: some guest topology must result
 * in exactly the observed pins. Undefined if none does, or if two contradict each other.
 */
export function ioThreadPins(guest: UnpinnedIo): readonly number[] | undefined {
  const { container, vcpus, ioThreads, emulator } = guest;
  const cells = launcherCells(guest.host);
  const answers = new Map<string, readonly number[]>();
  for (const threads of GUEST_THREADS) {
    const topology = { sockets: 1, cores: vcpus.length / threads, threads };
    if (!Number.isInteger(topology.cores)) continue;
    // A strict guest that is placed at all is placed in the same way.
    const request = { cpuset: container, cells, guest: topology, strict: false, ioThreads, emulator: emulator.size };
    try {
      const pins = launcherPins(request);
      const isObserved = pins.vcpus.join() === vcpus.join() && pins.emulator.every((cpu) => emulator.has(cpu));
      if (isObserved) answers.set(pins.ioThreads.join(), pins.ioThreads);
    } catch (error) {
      if (!(error instanceof LauncherPinError)) throw error;
    }
  }
  return answers.size === 1 ? [...answers.values()][0] : undefined;
}

/** A host in virt-handler's description. */
export function launcherCells({ cells, cores }: Host): LauncherCells {
  const siblings = new Map(cores.flatMap((core) => [...core].map((cpu) => [cpu, core.toArray()] as const)));
  return cells.map(({ cpus }) => [...cpus].map((cpu) => ({ cpu, siblings: siblings.get(cpu)! })));
}
