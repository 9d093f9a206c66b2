import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { housekeeping, ioThreadPins } from '../../model/launcher/qemu-threads.ts';
import type { ThreadAffinity } from '../../native/affinity.ts';
import { moveThreads } from '../../native/pin-threads.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import type { GuestThread, QemuGuest } from './guest.ts';

export interface HousekeepingOutcome {
  /** The CPUs that virt-handler's cgroup should contain: those of the container without a pinned vCPU. */
  readonly cgroup: CpuSet;
  /** The CPUs of threads other than vCPUs, by thread id, except IO threads whose pin the kernel keeps. */
  readonly targets: ReadonlyMap<number, CpuSet>;
  readonly emulator: CpuSet;
  readonly repairs: number;
  readonly problems: readonly string[];
}

export interface HousekeepingParts {
  /** The affinity of the guest's own threads, at this moment. */
  readonly affinity: () => ThreadAffinity;
  readonly tree: Pick<CgroupTree, 'housekeeping' | 'setHousekeeping'>;
}

export interface ContainerState {
  readonly path: string;
  readonly cpuset: CpuSet;
  readonly guest: Pick<QemuGuest, 'list'>;
  readonly threads: readonly GuestThread[];
  readonly host: Host | undefined;
}

/**
 * Gives the emulator's threads all CPUs that no thread is pinned to, in virt-handler's cgroup and as each thread's own
 * affinity: since Linux 6.2, a change of the cgroup does not change the affinity. It widens the cgroup first, since an
 * IO thread's pin is not visible while its CPU is outside; older kernels forget the pin, so the agent computes it as
 * the launcher did. It keeps only the last value that virt-handler wrote and the pins computed from it, until those
 * CPUs change.
 *
 * Owner: virt-handler wrote the value, and the launcher the pins. Age: while container and vCPUs have the same CPUs. End:
 * when these change, and with the guest.
 */
export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #about = '';
  /** The CPUs that virt-handler put into the cgroup: those of its emulator pin. */
  #written: CpuSet | undefined;
  #ioPins: ReadonlyMap<number, CpuSet> = new Map();

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  /**
   * @returns undefined if the emulator has no CPUs of its own, or not every vCPU is pinned to one CPU (yet)
   * @throws UnreadableError
   */
  keep(state: ContainerState): HousekeepingOutcome | undefined {
    const { path, cpuset } = state;
    const current = this.#parts.tree.housekeeping(path);
    const vcpus = pinnedVcpus(state.threads);
    const free = cpuset.minus(CpuSet.of(vcpus));
    if (current === undefined || vcpus.length === 0 || free.isEmpty) return undefined;
    const about = `${cpuset} ${vcpus}`;
    if (about !== this.#about) {
      this.#about = about;
      this.#written = undefined;
      this.#ioPins = new Map();
    }
    const isAsWanted = current.equals(free);
    const problem = isAsWanted ? undefined : this.#widen(path, current, free);
    const threads = isAsWanted ? state.threads : state.guest.list();
    const io = threads.filter(({ role }) => role.kind === 'io');
    if (io.some(({ allowed }) => allowed.equals(free))) this.#computeIoPins(state, vcpus, io);
    const pins = io.map(({ tid, allowed }) => this.#ioPins.get(tid) ?? pinWithin(allowed, free));
    const goal = housekeeping({ container: cpuset, vcpus: CpuSet.of(vcpus), ioThreads: unionOf(pins) });
    if (goal === undefined) return undefined;

    const emulator = threads.filter(({ role }) => role.kind === 'emulator');
    const targets = new Map([...emulator.map(({ tid }) => [tid, goal.emulator] as const), ...this.#ioPins]);
    const moves = threads.filter(({ tid, allowed }) => targets.get(tid)?.equals(allowed) === false);
    const affinity = this.#parts.affinity();
    const immovable = moves.filter(({ tid }) => {
      const cpus = targets.get(tid) ?? goal.emulator;
      return moveThreads(affinity, [tid], cpus.toWords(1)).left.length > 0;
    });
    const problems = problem === undefined ? [] : [problem];
    const repairs = moves.length - immovable.length + (isAsWanted || problem !== undefined ? 0 : 1);
    const [first] = immovable;
    if (first !== undefined) {
      const example = `such as ${first.tid} to ${targets.get(first.tid)?.brief}`;
      problems.push(`${immovable.length} threads cannot move to their CPUs, ${example}`);
    }
    return { cgroup: free, emulator: goal.emulator, targets, repairs, problems };
  }

  /** @returns the problem, if writing failed */
  #widen(path: string, current: CpuSet, free: CpuSet): string | undefined {
    this.#written = current;
    try {
      this.#parts.tree.setHousekeeping(path, free);
      return undefined;
    } catch (error) {
      return `setting the cgroup housekeeping to CPUs ${free.brief} failed: ${(error as Error).message}`;
    }
  }

  #computeIoPins({ cpuset, host }: ContainerState, vcpus: readonly number[], io: readonly GuestThread[]): void {
    const emulator = this.#written;
    if (this.#ioPins.size > 0 || host === undefined || emulator === undefined) return;
    const pins = ioThreadPins({ container: cpuset, host, vcpus, ioThreads: io.length, emulator }) ?? [];
    const inOrder = [...io].sort((a, b) => poolNumber(a) - poolNumber(b));
    this.#ioPins = new Map(pins.map((cpu, i) => [inOrder[i]?.tid ?? 0, CpuSet.of([cpu])]));
  }
}

/** By index. In any other state than one CPU for each vCPU, the guest is not set up yet: the list is empty. */
function pinnedVcpus(threads: readonly GuestThread[]): readonly number[] {
  const vcpus = threads.flatMap(({ role, allowed }) => (role.kind === 'vcpu' ? [{ index: role.index, allowed }] : []));
  vcpus.sort((a, b) => a.index - b.index);
  const isPinned = vcpus.every(({ index, allowed }, i) => index === i && allowed.size === 1);
  const cpus = vcpus.map(({ allowed }) => allowed.first ?? 0);
  return isPinned && new Set(cpus).size === cpus.length ? cpus : [];
}

/** The CPUs that an IO thread is pinned to; empty if it may run wherever the emulator may. */
function pinWithin(allowed: CpuSet, free: CpuSet): CpuSet {
  return allowed.isSubsetOf(free) && !allowed.equals(free) ? allowed : CpuSet.EMPTY;
}

/** The number at the end of an IO thread's name: 2 for `IO iothread2`. */
function poolNumber({ name }: GuestThread): number {
  return Number(/(\d+)$/.exec(name)?.[1] ?? 0);
}

/**
 * Moves the emulator's and IO threads to a mask's CPUs, as far as the kernel allows: it places io_uring's workers
 * itself. A cgroup `housekeeping` gets them first, in case it exists: virt-handler writes it again at each of its
 * syncs. @returns the number of moved threads, and the threads that the kernel leaves on other CPUs
 */
export function keepOthers(parts: HousekeepingParts, path: string, others: readonly GuestThread[], cpus: CpuSet) {
  openHousekeeping(parts.tree, path, cpus);
  const astray = others.filter(({ allowed }) => !allowed.equals(cpus));
  const tids = astray.map(({ tid }) => tid);
  const { there, left } = moveThreads(parts.affinity(), tids, cpus.toWords(1));
  return { moved: there.length, left: astray.filter(({ tid }) => left.includes(tid)) };
}

/** Sets an existing cgroup `housekeeping` to these CPUs. If writing fails, it confines its threads as before. */
export function openHousekeeping(tree: HousekeepingParts['tree'], path: string, cpus: CpuSet): void {
  const current = tree.housekeeping(path);
  if (current === undefined || current.equals(cpus)) return;
  try {
    tree.setHousekeeping(path, cpus);
  } catch {
    // The kernel then leaves its threads on other CPUs, which is reported.
  }
}

/** The threads that are not on the mask's CPUs, for the VM's status; undefined if there are none. */
export function leftText(left: readonly GuestThread[]): string | undefined {
  const [first] = left;
  if (first === undefined) return undefined;
  return `the kernel leaves ${left.length} threads other than vCPUs elsewhere, such as ${first.tid} (${first.name}) on ${first.allowed.brief}`;
}
