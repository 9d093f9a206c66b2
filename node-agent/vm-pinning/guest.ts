import { CpuSet } from '../../model/cpu-set.ts';
import { type QemuThreadRole, qemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import type { Affinity } from '../../native/affinity.ts';
import { SyscallError } from '../../native/syscall-error.ts';
import { createSets } from '../processes/cpu-sets.ts';
import { commOf, identityOf, startOf } from '../processes/proc.ts';
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
  /** What /proc says of a process; undefined if it is gone. */
  readonly processes: {
    name(pid: number): string | undefined;
    /** When it was started. */
    start(pid: number): number | undefined;
    /** Differs between two processes that had the same id, and may change while one lives. Cheaper than `start`. */
    identity(pid: number): number | undefined;
  };
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export const procProcesses: GuestParts['processes'] = {
  name: commOf,
  start: (pid) => startOf(pid),
  identity: identityOf,
};

/** Milliseconds after which a thread has the name it will keep: it is born with its parent's and sets its own at once. */
const NAMED_AFTER = 1000;
/** Processes of a launcher that may be its QEMU: libvirt has one or two at a time. */
const MOST_GUESTS = 4;
/** Milliseconds within which a name is not read twice: a guest that is found is looked at once more. */
const JUST_NOW = 100;

const ESRCH = 3;

/** What is kept of a thread from look to look. */
interface Known {
  readonly name: string;
  readonly role: QemuThreadRole;
  /** Milliseconds at which it was found, and its name was read last. */
  readonly first: number;
  readonly read: number;
  /** As it was at the last look. */
  seen: GuestThread | undefined;
}

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
  let identity = processes.identity(pid);
  const start = processes.start(pid);
  if (start === undefined) return undefined;
  const known = new Map<number, Known>();
  const setOf = createSets();
  let isReady = false;

  const meet = (tid: number, at: number) => {
    const before = known.get(tid);
    const isSettled =
      before?.role.kind !== 'emulator' || at - before.first >= NAMED_AFTER || at - before.read < JUST_NOW;
    if (before !== undefined && isSettled) return before;
    const name = threads.name(pid, tid);
    if (name === undefined) return undefined;
    const thread = { name, role: qemuThreadRole(name), first: before?.first ?? at, read: at, seen: undefined };
    known.set(tid, thread);
    return thread;
  };

  /** Threads that stay where they are stay the same object: a look at a guest at rest makes few. */
  const lookAt = (tid: number, at: number): GuestThread | undefined => {
    const thread = meet(tid, at);
    const allowed = thread && allowedOf(affinity, tid, setOf);
    if (thread === undefined || allowed === undefined) return undefined;
    if (thread.seen?.allowed !== allowed) thread.seen = { tid, name: thread.name, role: thread.role, allowed };
    return thread.seen;
  };

  const isAlive = () => {
    const now = processes.identity(pid);
    if (now !== undefined && now === identity) return true;
    if (processes.start(pid) !== start) return false;
    identity = now;
    return true;
  };

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
      const found = tids.map((tid) => lookAt(tid, at)).filter((thread) => thread !== undefined);
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
