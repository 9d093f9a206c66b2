import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Compiles a C file.
 * @param source its path below bench/
 * @throws Error if there is no gcc
 */
export function compile(source: string) {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const binary = join(directory, 'program');
  try {
    execFileSync('gcc', ['-O2', '-Wall', '-pthread', '-o', binary, join(import.meta.dirname, '..', source)], {
      stdio: 'pipe',
    });
  } catch (error) {
    rmSync(directory, { recursive: true });
    throw new Error(`${source} cannot be compiled (is gcc installed?): ${(error as Error).message}`, { cause: error });
  }
  return {
    /** The compiled program. */
    path: binary,
    /** Runs the program and returns the numbers in its output, one per line. */
    run: (...args: (string | number)[]) =>
      execFileSync(binary, args.map(String), { encoding: 'utf8' }).trim().split('\n').map(Number),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

const OVS_DAEMONS = ['ovs-vswitchd', 'ovsdb-server'];

/** Starts processes with the names of Open vSwitch's daemons and many idle threads each. */
export async function startManyThreads(threads = 64) {
  const program = compile('support/threads.c');
  const rundir = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const daemons = OVS_DAEMONS.map((name) =>
    spawn(program.path, [name, String(threads), join(rundir, `${name}.pid`)], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  await Promise.all(daemons.map((daemon) => once(daemon.stdout, 'data')));
  return {
    /** Of ovs-vswitchd, then of ovsdb-server. */
    pids: daemons.map(({ pid }) => pid!),
    /** Directory of their pidfiles. */
    rundir,
    stop() {
      for (const daemon of daemons) daemon.kill('SIGKILL');
      program.remove();
      rmSync(rundir, { recursive: true, force: true });
    },
  };
}
