import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';

/** The results of the calls of one run. */
export interface FuzzResult {
  readonly calls: number;
  /** Passed calls, and errors by code. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** At most ten problems; a report of a sanitizer is one. */
  readonly problems: readonly string[];
}

/**
 * Sends the plugin random calls with the address and undefined-behaviour sanitizers, and checks that each answer is
 * allowed by the specification: nothing or JSON on success, otherwise an error in its form.
 */
export function fuzzGate(calls: number, seed: number): FuzzResult {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-fuzz-'));
  try {
    execFileSync('make', ['-s', '-C', join(root, 'native/cni'), 'fuzz', `OUT=${directory}`], { stdio: 'pipe' });
    const { stdout, stderr, status, signal } = spawnSync(
      join(directory, 'fuzz-gate'),
      [String(seed), String(calls), directory],
      { maxBuffer: 4 * 1024 ** 3, env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' } },
    );
    const result = judge(stdout);
    if (status === 0) return result;
    const report = `ended with ${signal ?? status}: ${stderr.toString().slice(0, 4000)}`;
    return { ...result, problems: [report, ...result.problems] };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function judge(output: Buffer): FuzzResult {
  const outcomes: Record<string, number> = {};
  const problems: string[] = [];
  let calls = 0;
  for (let at = 0; at < output.length; calls++) {
    const newline = output.indexOf(10, at);
    const [status = 0, length = 0] = output.subarray(at, newline).toString().split(' ').map(Number);
    const text = output.subarray(newline + 1, newline + 1 + length).toString();
    at = newline + 1 + length + 1;
    const outcome = outcomeOf(status, text);
    if (outcome.startsWith('!') && problems.length < 10)
      problems.push(`${outcome}: status ${status}, ${text.slice(0, 500)}`);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  return { calls, outcomes, problems };
}

function outcomeOf(status: number, text: string): string {
  if (text === '') return status === 0 ? 'nothing' : '!an error without a word';
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return '!no JSON';
  }
  if (status === 0) return 'result';
  const { cniVersion, code, msg } = value;
  const isError = /^\d\.\d\.\d$/.test(String(cniVersion)) && typeof code === 'number' && typeof msg === 'string';
  return isError ? `code ${code}` : '!no error of the specification';
}
