import type { CpuSet } from '../../model/cpu-set.ts';
import { type QemuThreadRole, qemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { allowedOf, commOf, identityOf, startOf, type Threads } from '../processes/proc.ts';

export interface GuestThread {
  readonly tid: number;
  readonly name: string;
  readonly role: QemuThreadRole;
  readonly allowed: CpuSet;
}

export interface GuestParts {
  readonly affinity: ThreadAffinity;
  readonly threads: Pick<Threads, 'list' | 'name' | 'has'>;
  readonly processes: typeof procProcesses;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Facts about processes from /proc; undefined for one that has ended. `identity` is cheaper than `start`. */
export const procProcesses = { name: commOf, start: (pid: number) => startOf(pid), identity: identityOf };

/** Milliseconds after which a thread's name is final: it inherits its parent's name and sets its own at once. */
const NAME_FINAL_MILLISECONDS = 1000;
/** Maximum processes of a launcher that may be its QEMU: libvirt has one or two at a time. */
const MAX_GUESTS = 4;
/** Milliseconds within which a name is not read again: a guest that was just found is read once more. */
const RECENT_MILLISECONDS = 100;

const ESRCH = 3;

interface NamedThread {
  readonly name: string;
  readonly role: QemuThreadRole;
  /** When it was found, and when its name was last read, in milliseconds. */
  readonly first: number;
  readonly read: number;
}

/** libvirt also starts QEMU to query its capabilities, without vCPU threads: one with them has precedence. */
export function findGuest(pids: readonly number[], parts: GuestParts): QemuGuest | undefined {
  const guests = pids
    .filter((pid) => parts.processes.name(pid)?.startsWith('qemu') === true)
    .slice(0, MAX_GUESTS)
    .map((pid) => createGuest(pid, parts))
    .filter((guest) => guest !== undefined);
  for (const guest of guests) {
    guest.list();
    if (guest.isReady()) return guest;
  }
  return guests[0];
}

export type QemuGuest = NonNullable<ReturnType<typeof createGuest>>;

function createGuest(pid: number, { affinity, threads, processes, now }: GuestParts) {
  let identity = processes.identity(pid);
  const start = processes.start(pid);
  if (start === undefined) return undefined;
  const namedThreads = new Map<number, NamedThread>();
  let isReady = false;

  const nameOf = (tid: number, at: number) => {
    const before = namedThreads.get(tid);
    const isSettled =
      before?.role.kind !== 'emulator' ||
      at - before.first >= NAME_FINAL_MILLISECONDS ||
      at - before.read < RECENT_MILLISECONDS;
    if (before !== undefined && isSettled) return before;
    const name = threads.name(pid, tid);
    if (name === undefined) return undefined;
    const thread = { name, role: qemuThreadRole(name), first: before?.first ?? at, read: at };
    namedThreads.set(tid, thread);
    return thread;
  };

  const readThread = (tid: number, at: number): GuestThread | undefined => {
    const thread = nameOf(tid, at);
    const allowed = thread && allowedOf(affinity, tid);
    if (thread === undefined || allowed === undefined) return undefined;
    return { tid, name: thread.name, role: thread.role, allowed };
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
    /** When it started; together with the id it identifies one process permanently. */
    start,
    /** Moves only this guest's threads. Use it at once: it verifies the process, and each thread before its move. */
    affinity(): ThreadAffinity {
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
    /** Whether it had vCPU threads at the last check. */
    isReady: () => isReady,
    isAlive,
    list(): GuestThread[] {
      const at = now();
      const tids = threads.list(pid);
      if (namedThreads.size > tids.length) {
        const alive = new Set(tids);
        for (const tid of namedThreads.keys()) if (!alive.has(tid)) namedThreads.delete(tid);
      }
      const readings = tids.map((tid) => readThread(tid, at)).filter((thread) => thread !== undefined);
      isReady = readings.some(({ role }) => role.kind === 'vcpu');
      return readings;
    },
  };
}
