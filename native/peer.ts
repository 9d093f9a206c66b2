import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import koffi from 'koffi';

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const CREDENTIAL_FIELDS = 3;

type SocketCall = (fd: number, level: number, option: number, value: Int32Array, length: Uint32Array) => number;

/**
 * The process that listens at the other end of a Unix socket; undefined if it is outside this PID namespace. Source:
 * unix(7), SO_PEERCRED.
 */
export function peerOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: { fd?: number } | null };
  if (handle?.fd === undefined || handle.fd < 0) return undefined;
  const getsockopt: SocketCall = koffi
    .load(null)
    .func('int getsockopt(int fd, int level, int option, _Inout_ int32_t *value, _Inout_ uint32_t *length)');
  const credentials = new Int32Array(CREDENTIAL_FIELDS);
  const length = new Uint32Array([credentials.byteLength]);
  if (getsockopt(handle.fd, SOL_SOCKET, SO_PEERCRED, credentials, length) !== 0) return undefined;
  const [pid = 0] = credentials;
  return pid > 0 ? pid : undefined;
}

/** The current threads of a process, the main thread first; empty if it has ended. */
export function threadsOfProcess(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

const ESRCH = 3;
/** The number of tgkill(2): not every C library has a function for it. Source: asm/unistd.h of each architecture. */
const TGKILL: Readonly<Record<string, number>> = { x64: 234, arm64: 131, riscv64: 131, loong64: 131 };

type Syscall = (number: number, tgid: number, tid: number, signal: number) => number;

let probe: ((pid: number, tid: number) => boolean) | undefined;

/**
 * Whether a thread belongs to a process now, by one system call that reads no file: the kernel reuses ids. Source:
 * tgkill(2): signal 0 is never sent; ESRCH means that it does not, EPERM that it does. @throws Error on an architecture
 * for which the number of the call is unknown
 */
export function isThreadOf(pid: number, tid: number): boolean {
  probe ??= createProbe();
  return probe(pid, tid);
}

function createProbe(): (pid: number, tid: number) => boolean {
  const number = TGKILL[process.arch];
  if (process.platform !== 'linux' || number === undefined) {
    throw new Error(
      `threads cannot be looked up on ${process.platform} ${process.arch}: expected Linux on x64 or arm64`,
    );
  }
  const syscall: Syscall = koffi.load(null).func('long syscall(long number, int tgid, int tid, int signal)');
  return (pid, tid) => pid > 0 && tid > 0 && (syscall(number, pid, tid, 0) === 0 || koffi.errno() !== ESRCH);
}
