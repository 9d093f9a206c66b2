/** The errno values that the calls bound here document, by their number on every architecture of Linux. */
const NAMES: Readonly<Record<number, string>> = { 1: 'EPERM', 3: 'ESRCH', 14: 'EFAULT', 22: 'EINVAL', 38: 'ENOSYS' };

const MEANINGS: Readonly<Record<string, string>> = {
  EPERM: 'not allowed; setting the affinity of other users\u2019 threads needs CAP_SYS_NICE',
  ESRCH: 'there is no such thread',
  EINVAL: 'the kernel accepts none of these CPUs for this thread',
  ENOSYS: 'this kernel does not know the call',
};

/** A system call that returned an error: the call, the thread, and errno by number and name. */
export class SyscallError extends Error {
  readonly call: string;
  readonly tid: number;
  readonly errno: number;
  /** `ESRCH`, `EPERM`, `EINVAL`, …; `errno <number>` for a value that the call does not document. */
  readonly code: string;

  constructor(call: string, tid: number, errno: number) {
    const code = NAMES[errno] ?? `errno ${errno}`;
    super(`${call}(${tid}): ${code}: ${MEANINGS[code] ?? 'see errno(3)'}`);
    this.name = 'SyscallError';
    this.call = call;
    this.tid = tid;
    this.errno = errno;
    this.code = code;
  }
}
