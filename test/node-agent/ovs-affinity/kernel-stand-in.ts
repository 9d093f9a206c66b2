import { CpuSet } from '../../../model/cpu-set.ts';
import { SyscallError, type ThreadAffinity } from '../../../native/affinity.ts';
import { createProcessAffinity, type ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { set } from '../support.ts';

const PID = 100;

/** A kernel with one process: masks by thread, names, a cpuset. It counts every requested change. */
export class FakeKernel {
  readonly masks = new Map<number, CpuSet>();
  readonly names = new Map<number, string>();
  /** The start time of a thread, if it is not 0. */
  readonly born = new Map<number, number>();
  online = '0-15';
  cpuset = '0-63';
  sets = 0;
  onSet = (_tid: number) => {};
  now = 0;
  /** The start time of the process. Another process with the same pid has another one. */
  identity = 1;

  thread(tid: number, mask: string, name = 'handler'): void {
    this.masks.set(tid, set(mask));
    this.names.set(tid, name);
  }

  readonly affinity: ThreadAffinity = {
    get: (tid) => {
      return this.mask(tid, 'sched_getaffinity').intersect(set(this.online)).toWords(32);
    },
    set: (tid, words) => {
      this.sets++;
      this.mask(tid, 'sched_setaffinity');
      const allowed = CpuSet.fromWords(words).intersect(set(this.cpuset)).intersect(set(this.online));
      if (allowed.isEmpty) throw new SyscallError('sched_setaffinity', tid, 22);
      this.masks.set(tid, allowed);
      this.onSet(tid);
    },
  };

  private mask(tid: number, call: string): CpuSet {
    const mask = this.masks.get(tid);
    if (mask === undefined) throw new SyscallError(call, tid, 3);
    return mask;
  }

  maskTexts(): Record<number, string> {
    return Object.fromEntries([...this.masks].map(([tid, mask]) => [tid, mask.toString()]));
  }

  keeper(name: 'ovs-vswitchd' | 'ovsdb-server' = 'ovs-vswitchd'): ProcessAffinity {
    return createProcessAffinity(
      { name, role: 'daemon', pid: PID, start: 0 },
      {
        affinity: this.affinity,
        threads: {
          list: () => [...this.masks.keys()],
          has: (_pid, tid) => this.masks.has(tid),
          summary: () => ({ count: this.masks.size, identity: this.identity }),
          name: (_pid, tid) => this.names.get(tid),
          start: (_pid, tid) => (this.masks.has(tid) ? (this.born.get(tid) ?? 0) : undefined),
        },
        machine: () => set(this.online),
        now: () => this.now,
      },
    );
  }
}
