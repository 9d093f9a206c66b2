/** A system call of the program, as strace prints it. */
export interface SystemCall {
  readonly name: string;
  readonly args: string;
  /** -1 for an error, and for a call that a signal interrupted. */
  readonly result: number;
}

/** A wait system call of the program, which does not depend on the speed of the machine. */
export interface Wait {
  /** Timeout in milliseconds; -1: none. */
  readonly most: number;
  /** It ended by its timeout. */
  readonly ranOut: boolean;
}

const CALL = /^(?:\d+ +)?(\w+)\((.*)\)\s+= (-?\d+|\?)/;

/** The system calls of a trace that strace wrote with `-o`, in order; lines of another kind are skipped. */
export function callsOf(trace: string): SystemCall[] {
  return trace.split('\n').flatMap((line) => {
    const [, name = '', args = '', result] = CALL.exec(line) ?? [];
    return name === '' ? [] : [{ name, args, result: result === '?' ? -1 : Number(result) }];
  });
}

/** The waits among system calls, in order. */
export function waitsOf(calls: readonly SystemCall[]): Wait[] {
  return calls
    .filter(({ name }) => ['poll', 'ppoll', 'nanosleep', 'clock_nanosleep'].includes(name))
    .map(({ name, args, result }) => {
      const [, seconds, nanos] = /tv_sec=(\d+), tv_nsec=(\d+)/.exec(args) ?? [];
      const inTimespec = seconds === undefined ? -1 : Number(seconds) * 1000 + Number(nanos) / 1_000_000;
      const most = name === 'poll' ? Number(/, (-?\d+)$/.exec(args)?.[1]) : inTimespec;
      return { most, ranOut: result === 0 };
    });
}
