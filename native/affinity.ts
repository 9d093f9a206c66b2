import { endianness } from 'node:os';
import koffi from 'koffi';

/** Names and meanings of the errno values that the calls bound here document, on every architecture of Linux. */
const ERRORS = new Map([
  [1, ['EPERM', 'not allowed; setting the affinity of other users\u2019 threads needs CAP_SYS_NICE']],
  [3, ['ESRCH', 'there is no such thread']],
  [14, ['EFAULT', 'see errno(3)']],
  [22, ['EINVAL', 'the kernel accepts none of these CPUs for this thread']],
  [38, ['ENOSYS', 'this kernel does not know the call']],
]);

/** A system call that returned an error: the call, the thread, and errno by number and name. */
export class SyscallError extends Error {
  readonly tid: number;
  /** `ESRCH`, `EPERM`, `EINVAL`, …; `errno <number>` for a value that the call does not document. */
  readonly code: string;

  constructor(call: string, tid: number, errno: number) {
    const [code = `errno ${errno}`, meaning = 'see errno(3)'] = ERRORS.get(errno) ?? [];
    super(`${call}(${tid}): ${code}: ${meaning}`);
    this.name = 'SyscallError';
    this.tid = tid;
    this.code = code;
  }
}

/** CPU sets are 32-bit words, lowest CPU ids first, of any length: cpu_set_t on little-endian machines. */
export interface ThreadAffinity {
  /** Its active CPUs, without trailing empty words. @throws SyscallError ESRCH if the thread has ended */
  get(tid: number): Uint32Array;
  /** The kernel silently drops CPUs that it lacks or the cpuset forbids. @throws SyscallError ESRCH, EPERM, EINVAL */
  set(tid: number, words: Uint32Array): void;
}

/** Does not confine a thread, and follows its cpuset, unlike a mask of the present CPUs (since Linux 6.2). */
export const EVERY_CPU: Uint32Array = new Uint32Array(2048).fill(0xffffffff);

const EINVAL = 22;
const BYTES_PER_WORD = 4;
/** cpu_set_t consists of longs; a length that is not a multiple of a long is EINVAL. */
const WORDS_PER_LONG = 2;
/** 1,024 CPUs, like glibc's cpu_set_t. If the kernel may have more, it returns EINVAL, and the buffer is doubled. */
const FIRST_WORDS = 32;
const MAX_WORDS = 32_768;
const LARGEST_PID = 2 ** 22;

type SchedCall = (pid: number, bytes: number, mask: Uint32Array) => number;

/** Binds the calls of this process's C library. @throws Error if the platform has no such calls */
export function createAffinity(): ThreadAffinity {
  if (process.platform !== 'linux') throw new Error(`thread affinity needs Linux, this is ${process.platform}`);
  // On a big-endian machine, a long contains its two words in reverse order; koffi has no build for one.
  if (endianness() !== 'LE') throw new Error('thread affinity is built for little-endian machines only');
  const libc = koffi.load(null);
  const getaffinity: SchedCall = libc.func('int sched_getaffinity(int pid, size_t bytes, void *mask)');
  const setaffinity: SchedCall = libc.func('int sched_setaffinity(int pid, size_t bytes, void *mask)');
  let buffer = new Uint32Array(FIRST_WORDS);

  const get = (tid: number): Uint32Array => {
    assertTid(tid);
    // The library's wrapper clears the bytes that the kernel does not fill, so the buffer can be reused as it is.
    if (getaffinity(tid, buffer.length * BYTES_PER_WORD, buffer) >= 0) return buffer.slice(0, usedLength(buffer));
    const errno = koffi.errno();
    if (errno !== EINVAL || buffer.length >= MAX_WORDS) throw new SyscallError('sched_getaffinity', tid, errno);
    buffer = new Uint32Array(buffer.length * 2);
    return get(tid);
  };

  return {
    get,
    set(tid, words) {
      assertTid(tid);
      if (!(words instanceof Uint32Array) || words.length === 0 || words.length > MAX_WORDS) {
        throw new RangeError(`an affinity mask has 1 to ${MAX_WORDS} words of 32 bits`);
      }
      const whole = words.length % WORDS_PER_LONG === 0 ? words : Uint32Array.of(...words, 0);
      if (setaffinity(tid, whole.length * BYTES_PER_WORD, whole) === 0) return;
      throw new SyscallError('sched_setaffinity', tid, koffi.errno());
    },
  };
}

/** The FFI layer would truncate a fraction, and 0 means the calling thread: neither is a thread's id. */
function assertTid(tid: number): void {
  if (!Number.isInteger(tid) || tid < 1 || tid > LARGEST_PID) {
    throw new RangeError(`thread id ${tid}: expected a whole number from 1 to ${LARGEST_PID}`);
  }
}

/** The number of words without trailing empty ones, at least one. */
function usedLength(words: Uint32Array): number {
  let length = words.length;
  while (length > 1 && words[length - 1] === 0) length--;
  return length;
}
