import type { CpuSet } from '../../model/cpu-set.ts';
import { type QemuThreadRole, qemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { allowedOf, commOf, identityOf, startOf, type Threads } from '../processes/proc.ts';
import { ThreadNames } from '../processes/thread-names.ts';

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
  /** Monotonic. */
  readonly nowSeconds: () => number;
}

/** Facts about processes from /proc; undefined for one that has ended. `identity` is cheaper than `start`. */
export const procProcesses = { name: commOf, start: (pid: number) => startOf(pid), identity: identityOf };

/** Maximum processes of a launcher that may be its QEMU: libvirt has one or two at a time. */
const MAX_GUESTS = 4;

const ESRCH = 3;

/**
 * libvirt also starts QEMU to query its capabilities, without vCPU threads: one with them has precedence.
 * @throws UnreadableError
 */
export function findGuest(pids: readonly number[], parts: GuestParts): QemuGuest | undefined {
  const guests = pids
    .filter((pid) => parts.processes.name(pid)?.startsWith('qemu') === true)
    .slice(0, MAX_GUESTS)
    .flatMap((pid) => {
      const start = parts.processes.start(pid);
      return start === undefined ? [] : [new QemuGuest(pid, start, parts)];
    });
  // Most launchers have one: its threads are listed by the caller.
  if (guests.length === 1) return guests[0];
  for (const guest of guests) {
    guest.list();
    if (guest.isReady) return guest;
  }
  return guests[0];
}

/**
 * One QEMU process. Owner: the launcher's pinning. Age: `list` reads CPUs each time, and names until they are final. End: with
 * the process; another one with its id is another guest.
 */
export class QemuGuest {
  readonly pid: number;
  /** When it started; together with the id it identifies one process permanently. */
  readonly start: number;
  readonly #parts: GuestParts;
  /** Equal for the same process; it may change for the same process. */
  #identity: number | undefined;
  readonly #names: ThreadNames;
  #isReady = false;

  constructor(pid: number, start: number, parts: GuestParts) {
    this.pid = pid;
    this.start = start;
    this.#parts = parts;
    this.#identity = parts.processes.identity(pid);
    this.#names = new ThreadNames(pid, parts.threads, parts.nowSeconds);
  }

  /** Whether it had vCPU threads at the last check. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** @throws UnreadableError */
  isAlive(): boolean {
    const { processes } = this.#parts;
    const identity = processes.identity(this.pid);
    if (identity !== undefined && identity === this.#identity) return true;
    if (processes.start(this.pid) !== this.start) return false;
    this.#identity = identity;
    return true;
  }

  /** Moves only this guest's threads. Use it at once: it verifies the process, and each thread before its move. */
  readonly affinity = (): ThreadAffinity => {
    const { affinity, threads } = this.#parts;
    let alive: boolean | undefined;
    return {
      get: affinity.get,
      set: (tid, words) => {
        alive ??= this.isAlive();
        if (!alive || !threads.has(this.pid, tid)) throw new SyscallError('sched_setaffinity', tid, ESRCH);
        affinity.set(tid, words);
      },
    };
  };

  /** @throws UnreadableError */
  list(): GuestThread[] {
    const names = this.#names.read(this.#parts.threads.list(this.pid));
    const guestThreads = [...names].flatMap(([tid, { name }]) => {
      const allowed = allowedOf(this.#parts.affinity, tid);
      return allowed ? [{ tid, name, role: qemuThreadRole(name), allowed }] : [];
    });
    this.#isReady = guestThreads.some(({ role }) => role.kind === 'vcpu');
    return guestThreads;
  }
}
