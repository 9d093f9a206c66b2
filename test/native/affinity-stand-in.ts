import { CpuSet } from '../../model/cpu-set.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';

const ESRCH = 3;
const EINVAL = 22;
const EPERM = 1;

/** Stands in for the kernel's affinity calls, on a machine with any number of CPUs. */
export class FakeAffinity implements ThreadAffinity {
  /** The CPUs of each thread. A thread that is not listed has ended. */
  readonly masks = new Map<number, CpuSet>();
  /** The CPUs that a thread's cpuset allows; undefined: all. */
  cpusetOf: (tid: number) => CpuSet | undefined = () => undefined;
  /** Threads that may not be moved. */
  readonly forbidden = new Set<number>();
  /** Each call of set, as `tid cpus`. */
  readonly sets: string[] = [];

  get = (tid: number): Uint32Array => {
    const mask = this.masks.get(tid);
    if (mask === undefined) throw new SyscallError('sched_getaffinity', tid, ESRCH);
    const allowed = this.cpusetOf(tid);
    // As since Linux 6.2: the requested CPUs apply again when the cpuset allows them.
    const both = allowed === undefined ? mask : mask.intersect(allowed);
    return (both.isEmpty && allowed !== undefined ? allowed : both).toWords(1);
  };

  set = (tid: number, words: Uint32Array): void => {
    if (!this.masks.has(tid)) throw new SyscallError('sched_setaffinity', tid, ESRCH);
    if (this.forbidden.has(tid)) throw new SyscallError('sched_setaffinity', tid, EPERM);
    const requested = CpuSet.fromWords(words);
    if (requested.intersect(this.cpusetOf(tid) ?? requested).isEmpty) {
      throw new SyscallError('sched_setaffinity', tid, EINVAL);
    }
    this.sets.push(`${tid} ${requested}`);
    this.masks.set(tid, requested);
  };
}
