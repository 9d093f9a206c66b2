import { PlumblineError } from '../errors.ts';
import { type GuestTopology, guestTopology, pinnedCpus } from './cpus.ts';
import { type LauncherCells, PinPool } from './pin-pool.ts';
import type { VmiShape } from './shapes.ts';

/**
 * The host CPUs that virt-launcher pins each vCPU, each IO thread and the emulator thread to.
 *
 * KubeVirt takes whole host cores first, then fragments of cores within one NUMA node, then (unless the guest's NUMA
 * nodes mirror the host's) fragments across NUMA nodes, always in the order in which the host lists its CPUs. It
 * repeats this at each sync, so the layout can be computed from the container's cpuset without libvirt.
 * Source: KubeVirt 1.9, pkg/virt-launcher/virtwrap/converter/vcpu.
 */

export interface LauncherPinRequest {
  /** The CPUs of the `compute` container. */
  readonly cpuset: Iterable<number>;
  readonly cells: LauncherCells;
  readonly guest: GuestTopology;
  /** guestMappingPassthrough: no guest core may have threads in two NUMA nodes of the host. */
  readonly strict: boolean;
  /** Number of IO threads of a supplemental pool; those of other policies share CPUs with other threads. */
  readonly ioThreads?: number;
  /** Number of CPUs for the emulator thread: 0, 1, or 2 with KubeVirt's even-parity annotation. */
  readonly emulator?: number;
}

export interface LauncherPins {
  /** CPU of each vCPU, by its index. */
  readonly vcpus: readonly number[];
  readonly ioThreads: readonly number[];
  readonly emulator: readonly number[];
  /** CPUs of the container without a pinned thread, in the order in which they would be taken. */
  readonly spare: readonly number[];
}

/** A cpuset in which virt-launcher cannot place its threads: the guest does not start. */
export class LauncherPinError extends PlumblineError {
  constructor(message: string) {
    super('launcher-pins', message);
  }
}

/**
 * The threads to pin for a VMI with dedicated CPUs.
 * @throws ParseError if the VMI's CPU amount is not a quantity
 */
export function launcherPinRequest(vmi: VmiShape, cpuset: Iterable<number>, cells: LauncherCells): LauncherPinRequest {
  const { ioThreads, emulator } = pinnedCpus(vmi);
  const strict = Boolean(vmi.spec.domain.cpu?.numa?.guestMappingPassthrough);
  return { cpuset, cells, guest: guestTopology(vmi), strict, ioThreads, emulator };
}

/**
 * The launcher's pin layout.
 * @throws LauncherPinError if the cpuset has too few CPUs, or too few within single cells for a strict guest
 */
export function launcherPins(request: LauncherPinRequest): LauncherPins {
  const { guest, strict } = request;
  const cores = guest.sockets * guest.cores;
  if (!(guest.threads >= 1)) throw new LauncherPinError(`a guest core cannot have ${guest.threads} threads`);
  const pool = new PinPool(request.cells, request.cpuset, guest.threads);
  const vcpus = pool.takeCores(cores, !strict);
  const missing = cores - vcpus.length / guest.threads;
  if (missing > 0) {
    const why = strict ? ' without a guest core that spans NUMA cells' : '';
    throw new LauncherPinError(
      `no CPUs left for ${Math.ceil(missing)} of ${cores} guest cores of ${guest.threads} threads${why}`,
    );
  }
  const ioThreads = takeThreads(pool, request.ioThreads ?? 0, 'IO threads');
  const emulator = takeThreads(pool, request.emulator ?? 0, 'emulator CPUs');
  return { vcpus, ioThreads, emulator, spare: drain(pool) };
}

function takeThreads(pool: PinPool, count: number, what: string): number[] {
  return Array.from({ length: count }, (_, i) => {
    const thread = pool.takeThread();
    if (thread === undefined) throw new LauncherPinError(`no CPUs left for ${count - i} of ${count} ${what}`);
    return thread;
  });
}

function drain(pool: PinPool): number[] {
  const rest: number[] = [];
  for (let thread = pool.takeThread(); thread !== undefined; thread = pool.takeThread()) rest.push(thread);
  return rest;
}
