import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface CProgram {
  /** The compiled program. */
  readonly path: string;
  /** Runs the program and returns the numbers in its output, one per line. */
  run(...args: (string | number)[]): number[];
  remove(): void;
}

/**
 * Compiles a C file.
 * @param source its path below bench/
 * @throws Error if there is no gcc
 */
export function compile(source: string): CProgram {
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
    path: binary,
    run: (...args) => execFileSync(binary, args.map(String), { encoding: 'utf8' }).trim().split('\n').map(Number),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[sorted.length >>> 1] ?? Number.NaN;
}
