import { CpuSet } from '../../model/cpu-set.ts';
import { type QemuThreadRole, qemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import type { Affinity } from '../../native/affinity.ts';
import { SyscallError } from '../../native/syscall-error.ts';
import { createSets } from '../processes/cpu-sets.ts';
import { commOf, startOf } from '../processes/proc.ts';
import type { Threads } from '../processes/threads.ts';

/** A thread of QEMU and where it may run. */
export interface GuestThread {
  readonly tid: number;
  readonly name: string;
  readonly role: QemuThreadRole;
  readonly allowed: CpuSet;
}

/** What a guest is looked at with. */
export interface GuestParts {
  readonly affinity: Affinity;
  readonly threads: Pick<Threads, 'list' | 'name' | 'has'>;
  /** A process's name and the time it was started; undefined if it is gone. */
  readonly processes: { name(pid: number): string | undefined; start(pid: number): number | undefined };
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export const procProcesses: GuestParts['processes'] = { name: commOf, start: (pid) => startOf(pid) };

/** Milliseconds after which a thread has the name it will keep: it is born with its parent's and sets its own at once. */
const NAMED_AFTER = 1000;
/** Processes of a launcher that may be its QEMU: libvirt has one or two at a time. */
const MOST_GUESTS = 4;
/** Milliseconds within which a name is not read twice: a guest that is found is looked at once more. */
const JUST_NOW = 100;

const ESRCH = 3;

/** One QEMU process; another one is another guest, even if it has the same id. */
export interface Guest {
  readonly pid: number;
  /** When it was started; with its id it names one process for ever. */
  readonly start: number;
  isAlive(): boolean;
  /**
   * What changes the affinity of its own threads only: an id may have gone to another process since it was listed. For use at
   * once: whether the process is still this guest is looked up before the first move, whether a thread is its own before each.
   */
  affinity(): Affinity;
  /** Whether it had vCPU threads at the last look. */
  isReady(): boolean;
  /** Its threads now, by id. */
  look(): GuestThread[];
}

/**
 * The QEMU among the processes of a launcher. libvirt also starts QEMU for a moment to ask what it can do: that one has
 * no vCPU threads, so one that has any goes before it.
 */
export function findGuest(pids: readonly number[], parts: GuestParts): Guest | undefined {
  const guests = pids
    .filter((pid) => parts.processes.name(pid)?.startsWith('qemu') === true)
    .slice(0, MOST_GUESTS)
    .map((pid) => createGuest(pid, parts))
    .filter((guest) => guest !== undefined);
  for (const guest of guests) {
    guest.look();
    if (guest.isReady()) return guest;
  }
  return guests[0];
}

function createGuest(pid: number, { affinity, threads, processes, now }: GuestParts): Guest | undefined {
  const start = processes.start(pid);
  if (start === undefined) return undefined;
  const known = new Map<
    number,
    { readonly name: string; readonly role: QemuThreadRole; readonly first: number; readonly read: number }
  >();
  const setOf = createSets();
  let isReady = false;

  const meet = (tid: number, at: number) => {
    const before = known.get(tid);
    const isSettled =
      before?.role.kind !== 'emulator' || at - before.first >= NAMED_AFTER || at - before.read < JUST_NOW;
    if (before !== undefined && isSettled) return before;
    const name = threads.name(pid, tid);
    if (name === undefined) return undefined;
    const thread = { name, role: qemuThreadRole(name), first: before?.first ?? at, read: at };
    known.set(tid, thread);
    return thread;
  };

  const isAlive = () => processes.start(pid) === start;

  return {
    pid,
    start,
    affinity() {
      let alive: boolean | undefined;
      return {
        get: affinity.get,
        set(tid, words) {
          alive ??= isAlive();
          if (!alive || !threads.has(pid, tid)) throw new SyscallError('sched_setaffinity', tid, ESRCH);
          affinity.set(tid, words);
        },
      };
    },
    isReady: () => isReady,
    isAlive,
    look() {
      const at = now();
      const tids = threads.list(pid);
      if (known.size > tids.length) {
        const alive = new Set(tids);
        for (const tid of known.keys()) if (!alive.has(tid)) known.delete(tid);
      }
      const found = tids.flatMap((tid) => {
        const thread = meet(tid, at);
        const cpus = thread && allowedOf(affinity, tid, setOf);
        return thread === undefined || cpus === undefined ? [] : [{ tid, ...thread, allowed: cpus }];
      });
      isReady = found.some(({ role }) => role.kind === 'vcpu');
      return found;
    },
  };
}

/** Where a thread may run; undefined if it has ended. */
export function allowedOf(affinity: Affinity, tid: number, setOf = CpuSet.fromWords): CpuSet | undefined {
  try {
    return setOf(affinity.get(tid));
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
