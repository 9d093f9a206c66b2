import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Copy } from './copy.ts';
import { NONE } from './switches.ts';

/** What `play.ts` is asked for. */
export interface Asked {
  readonly file: string;
  /** The number of the active mutant, or NONE. */
  readonly mutant: number;
  /** Continues after a failure. */
  readonly all: boolean;
}

/** What it answers. */
export interface Answer {
  readonly passed: boolean;
  /** The first test that failed, or why the file could not be loaded. */
  readonly failed?: string;
  /** Mutants whose place was reached while the tests ran, and while files were loaded. */
  readonly reached: readonly number[];
  readonly atLoad: readonly number[];
}

/** A test file, and the seconds that it takes. */
export interface TimedFile {
  readonly name: string;
  readonly seconds: number;
}

export interface Played extends Answer {
  /** It took much longer than it does without a change. */
  readonly late: boolean;
  /** Its process ended. */
  readonly crashed: boolean;
  readonly seconds: number;
}

/** Plays test files in a process of their own. */
export interface Player {
  /** Runs a file until a test of it fails. */
  play(file: TimedFile, mutant: number): Promise<Played>;
  /** Runs all of a file without a mutant. @param limit in seconds */
  time(name: string, limit: number): Promise<Played>;
  /** Ends the process with all that it has started; the next file is played by a new one. */
  end(): void;
}

/** Seconds for starting Node.js and loading a file, on a machine that does other things too. */
const START = 60;
/** A file gets this many seconds, and so many times what it takes by itself. */
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
      // With a process group of its own, which ends with it.
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
