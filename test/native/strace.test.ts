import assert from 'node:assert/strict';
import { callsOf, waitsOf } from './strace.ts';

/** Lines of strace 6.1. */
const TRACE = `poll([{fd=3, events=POLLIN}], 1, 250) = 0 (Timeout)
wait4(4711, 0x7ffc, WNOHANG, NULL) = 0
clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=10000000}, NULL) = ? ERESTART_RESTARTBLOCK (Interrupted by signal)
restart_syscall(<... resuming interrupted clock_nanosleep ...>) = 0
4711  openat(AT_FDCWD, "/none", O_RDONLY) = -1 ENOENT (No such file or directory)
+++ exited with 0 +++
`;

describe('a trace of strace', () => {
  const calls = callsOf(TRACE);

  it('is read call by call, with those that a signal interrupted', () => {
    assert.deepEqual(
      calls.map(({ name, result }) => `${name} ${result}`),
      ['poll 0', 'wait4 0', 'clock_nanosleep -1', 'restart_syscall 0', 'openat -1'],
    );
  });

  it('shows the waits, in milliseconds', () => {
    assert.deepEqual(waitsOf(calls), [
      { most: 250, ranOut: true },
      { most: 10, ranOut: false },
    ]);
  });
});
