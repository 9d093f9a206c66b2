import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import koffi from 'koffi';

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
/** pid, uid, gid. */
const CREDENTIALS = 3;

type SocketCall = (fd: number, level: number, option: number, value: Int32Array, length: Uint32Array) => number;

/**
 * The process that listens at the other end of a Unix socket, by its id in this process's PID namespace. Undefined if
 * the process is outside that namespace, or the kernel does not report it.
 * Source: unix(7), SO_PEERCRED.
 */
export function peerOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: { fd?: number } | null };
  if (handle?.fd === undefined || handle.fd < 0) return undefined;
  const getsockopt: SocketCall = koffi
    .load(null)
    .func('int getsockopt(int fd, int level, int option, _Inout_ int32_t *value, _Inout_ uint32_t *length)');
  const credentials = new Int32Array(CREDENTIALS);
  const length = new Uint32Array([credentials.byteLength]);
  if (getsockopt(handle.fd, SOL_SOCKET, SO_PEERCRED, credentials, length) !== 0) return undefined;
  const [pid = 0] = credentials;
  return pid > 0 ? pid : undefined;
}

/** The current threads of a process, the main thread first; empty if it has ended. */
export function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}
