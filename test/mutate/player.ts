import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Copy } from './copy.ts';
import { NONE } from './switches.ts';

/** A request to `play.ts`. */
export interface Asked {
  readonly file: string;
  /** The number of the active mutant, or NONE. */
  readonly mutant: number;
  /** Continues after a failure. */
  readonly all: boolean;
}

/** The answer. */
export interface Answer {
  readonly passed: boolean;
  /** The first test that failed, or why the file could not be loaded. */
  readonly failed?: string;
  /** Mutants that were reached while the tests ran, and while files were loaded. */
  readonly reached: readonly number[];
  readonly atLoad: readonly number[];
}

/** A test file and its duration in seconds. */
export interface TimedFile {
  readonly name: string;
  readonly seconds: number;
}

export interface Played extends Answer {
  /** It took much longer than without a change. */
  readonly late: boolean;
  /** Its process ended. */
  readonly crashed: boolean;
  readonly seconds: number;
}

/** Runs test files in a separate process. */
export interface Player {
  /** Runs a file until one of its tests fails. */
  play(file: TimedFile, mutant: number): Promise<Played>;
  /** Runs a complete file without a mutant. @param limit in seconds */
  time(name: string, limit: number): Promise<Played>;
  /** Ends the process with all its children; a new one runs the next file. */
  end(): void;
}

/** Seconds to start Node.js and load a file on a busy machine. */
const START = 60;
/** The limit of a file: at least this many seconds, and this multiple of its own duration. */
const LEAST = 20;
const TIMES = 6;

export function createPlayer(copy: Copy): Player {
  let child: ChildProcess | undefined;
  const known = new Set<string>();

  function start(): ChildProcess {
    known.clear();
    return spawn(process.execPath, ['--import', 'tsx', join(copy.directory, 'test/mutate/play.ts')], {
      cwd: copy.directory,
      env: { ...process.env, TMPDIR: copy.temporary },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      // With its own process group, which ends with it.
      detached: true,
    });
  }

  function end(): void {
    const ending = child;
    child = undefined;
    process.removeListener('exit', end);
    try {
      if (ending?.pid !== undefined) process.kill(-ending.pid, 'SIGKILL');
    } catch {
      // All of them have ended.
    }
    copy.endPrograms();
  }

  function ask(asked: Asked, seconds: number): Promise<Played> {
    if (child?.connected === false) end();
    if (child === undefined) {
      child = start();
      // Before the copy is removed, into which it writes.
      process.prependOnceListener('exit', end);
    }
    const one = child;
    const limit = seconds + (known.has(asked.file) ? 0 : START);
    known.add(asked.file);
    const begun = performance.now();
    return new Promise((resolve) => {
      const conclude = (answer: Answer, how: 'answered' | 'late' | 'crashed') => {
        clearTimeout(timer);
        one.removeAllListeners();
        // Between two files there is no other listener.
        one.on('error', () => undefined);
        const seconds = (performance.now() - begun) / 1000;
        resolve({ ...answer, late: how === 'late', crashed: how === 'crashed', seconds });
      };
      const lose = (how: 'late' | 'crashed') => {
        end();
        conclude({ passed: false, reached: [], atLoad: [] }, how);
      };
      const timer = setTimeout(() => lose('late'), limit * 1000);
      one.once('exit', () => lose('crashed'));
      one.once('error', () => lose('crashed'));
      one.once('message', (answer: Answer) => conclude(answer, 'answered'));
      one.send(asked);
    });
  }

  return {
    end,
    play: ({ name, seconds }, mutant) => ask({ file: name, mutant, all: false }, LEAST + TIMES * seconds),
    time: (name, limit) => ask({ file: name, mutant: NONE, all: true }, limit),
  };
}
