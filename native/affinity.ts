import { endianness } from 'node:os';
import koffi from 'koffi';
import { SyscallError } from './syscall-error.ts';

/**
 * The CPU affinity of single threads. CPU sets are 32-bit words, lowest CPU ids first, of any length: the layout of
 * cpu_set_t on little-endian machines.
 */
export interface Affinity {
  /**
   * The CPUs that a thread may run on, as far as they are active, without the empty words at the end. Not to be changed: threads
   * on the same CPUs get the same array.
   * @throws SyscallError ESRCH if the thread is gone
   */
  get(tid: number): Uint32Array;
  /**
   * Confines a thread. The kernel keeps those of the CPUs that exist and that the thread's cpuset allows, silently.
   * @throws SyscallError ESRCH if the thread is gone, EPERM without CAP_SYS_NICE, EINVAL if no CPU remains
   */
  set(tid: number, words: Uint32Array): void;
}

/**
 * What confines a thread to nothing. The kernel keeps the CPUs that exist and that the thread's cpuset allows, and follows that
 * cpuset as it changes: a thread that is given just the CPUs of today stays on them when its cpuset grows (since Linux 6.2).
 */
export const EVERY_CPU: Uint32Array = new Uint32Array(2048).fill(0xffffffff);

const EINVAL = 22;
const BYTES_PER_WORD = 4;
/** cpu_set_t is made of longs; a length that is no multiple of theirs is EINVAL. */
const WORDS_PER_LONG = 2;
/** 1,024 CPUs, as glibc's cpu_set_t; the kernel says EINVAL if it may have more, and the buffer is doubled. */
const FIRST_WORDS = 32;
const MOST_WORDS = 32_768;
const LARGEST_PID = 2 ** 22;
/** Sets of CPUs that are kept: where threads are, where they are moved, a few odd ones. */
const LATEST = 4;

type SchedCall = (pid: number, bytes: number, mask: Uint32Array) => number;

/**
 * Binds sched_setaffinity(2) and sched_getaffinity(2) of the C library that this process runs on, whichever that is.
 * @throws Error if the platform has no such calls
 */
export function createAffinity(): Affinity {
  if (process.platform !== 'linux') throw new Error(`thread affinity needs Linux, this is ${process.platform}`);
  // Longs on a big-endian machine hold their two words the other way round; koffi has no build for one.
  if (endianness() !== 'LE') throw new Error('thread affinity is built for little-endian machines only');
  const libc = koffi.load(null);
  const getaffinity: SchedCall = libc.func('int sched_getaffinity(int pid, size_t bytes, void *mask)');
  const setaffinity: SchedCall = libc.func('int sched_setaffinity(int pid, size_t bytes, void *mask)');
  let buffer = new Uint32Array(FIRST_WORDS);
  const latest: Uint32Array[] = [];

  /** Threads are on few different sets of CPUs, and one array for each of them spares thousands. */
  const shared = (): Uint32Array => {
    const length = usedLength(buffer);
    const known = latest.find((words) => words.length === length && startsWith(buffer, words));
    if (known !== undefined) return known;
    const words = buffer.slice(0, length);
    latest.unshift(words);
    latest.length = Math.min(latest.length, LATEST);
    return words;
  };

  const get = (tid: number): Uint32Array => {
    assertTid(tid);
    // The library's wrapper clears what the kernel does not fill, so the buffer may be used again as it is.
    if (getaffinity(tid, buffer.length * BYTES_PER_WORD, buffer) >= 0) return shared();
    const errno = koffi.errno();
    if (errno !== EINVAL || buffer.length >= MOST_WORDS) throw new SyscallError('sched_getaffinity', tid, errno);
    buffer = new Uint32Array(buffer.length * 2);
    return get(tid);
  };

  return {
    get,
    set(tid, words) {
      assertTid(tid);
      assertWords(words);
      const whole = words.length % WORDS_PER_LONG === 0 ? words : padded(words);
      if (setaffinity(tid, whole.length * BYTES_PER_WORD, whole) === 0) return;
      throw new SyscallError('sched_setaffinity', tid, koffi.errno());
    },
  };
}

/** The FFI layer would cut a fraction off, and 0 means the calling thread: neither may pass for a thread's id. */
function assertTid(tid: number): void {
  if (!Number.isInteger(tid) || tid < 1 || tid > LARGEST_PID) {
    throw new RangeError(`thread id ${tid}: expected a whole number from 1 to ${LARGEST_PID}`);
  }
}

function assertWords(words: Uint32Array): void {
  if (!(words instanceof Uint32Array) || words.length === 0 || words.length > MOST_WORDS) {
    throw new RangeError(`an affinity mask has 1 to ${MOST_WORDS} words of 32 bits`);
  }
}

/** Words without the empty ones at the end, but one. */
function usedLength(words: Uint32Array): number {
  let length = words.length;
  while (length > 1 && words[length - 1] === 0) length--;
  return length;
}

function startsWith(words: Uint32Array, first: Uint32Array): boolean {
  for (let i = 0; i < first.length; i++) if (words[i] !== first[i]) return false;
  return true;
}

function padded(words: Uint32Array): Uint32Array {
  const whole = new Uint32Array(words.length + 1);
  whole.set(words);
  return whole;
}
