import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';

/** How the calls of one run came out. */
export interface FuzzResult {
  readonly calls: number;
  /** Calls that were let through, and errors by their code. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** What was wrong, at most ten of them; a sanitizer's report is one. */
  readonly problems: readonly string[];
}

/**
 * Feeds the plugin random calls under the address and undefined-behaviour sanitizers, and checks that each answer is
 * what the specification allows: nothing or JSON on success, an error in its form otherwise.
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
