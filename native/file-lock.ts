import koffi from 'koffi';

const F_GETLK = 5;
const F_SETLK = 6;
const F_WRLCK = 1;
const F_UNLCK = 2;
/** struct flock of 64-bit Linux: type and whence (short), start and length (off_t), pid. Zeros mean the whole file. */
const FLOCK_BYTES = 32;
const PID_OFFSET = 24;
const EACCES = 13;
const EAGAIN = 11;

type Fcntl = (fd: number, command: number, type: string, lock: Buffer) => number;

let fcntl: Fcntl | undefined;

/**
 * The kernel releases the write lock when the process ends in any way, or closes any descriptor of the file (fcntl(2)).
 * @returns whether this process has the lock @throws Error with errno if the file cannot be locked
 */
export function tryLockFile(fd: number): boolean {
  const errno = call(fd, F_SETLK, writeLock());
  if (errno === 0 || errno === EACCES || errno === EAGAIN) return errno === 0;
  throw new Error(`fcntl(F_SETLK): errno ${errno}, see errno(3)`);
}

/**
 * The process with a lock of the file: 0 if it is outside this PID namespace, undefined if there is none. @throws Error
 * with errno
 */
export function lockHolder(fd: number): number | undefined {
  const lock = writeLock();
  const errno = call(fd, F_GETLK, lock);
  if (errno !== 0) throw new Error(`fcntl(F_GETLK): errno ${errno}, see errno(3)`);
  return lock.readInt16LE(0) === F_UNLCK ? undefined : Math.max(0, lock.readInt32LE(PID_OFFSET));
}

function writeLock(): Buffer {
  const lock = Buffer.alloc(FLOCK_BYTES);
  lock.writeInt16LE(F_WRLCK);
  return lock;
}

function call(fd: number, command: number, lock: Buffer): number {
  fcntl ??= koffi.load(null).func('int fcntl(int fd, int command, ...)') as Fcntl;
  return fcntl(fd, command, 'void *', lock) === 0 ? 0 : koffi.errno();
}
