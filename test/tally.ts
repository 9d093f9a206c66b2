import { relative } from 'node:path';
import type Mocha from 'mocha';

export interface Failure {
  readonly file: string;
  readonly title: string;
  readonly message: string;
  /** The lines of the stack in this repository. */
  readonly stack: readonly string[];
}

export interface Tally {
  readonly failed: readonly Failure[];
  /** Full titles of the tests that passed, by file below test/, without `.test.ts`. */
  readonly passed: readonly (readonly [file: string, titles: readonly string[]])[];
  readonly skipped: readonly (readonly [file: string, tests: number])[];
  readonly seconds: readonly (readonly [file: string, seconds: number])[];
  /** Number of tests that were skipped because of a missing part, by what they need and how to install it. */
  readonly missing: readonly (readonly [part: string, tests: number])[];
  readonly versions: readonly (readonly [name: string, version: string])[];
}

const TEST_ROOT = import.meta.dirname;

export function runTests(mocha: Mocha, parts: () => Pick<Tally, 'missing' | 'versions'>): Promise<Tally> {
  return new Promise((resolve) => {
    const passed = new Map<string, string[]>();
    const skipped = new Map<string, number>();
    const seconds = new Map<string, number>();
    const failed: Failure[] = [];
    const runner = mocha.run(() =>
      resolve({ failed, passed: [...passed], skipped: [...skipped], seconds: [...seconds], ...parts() }),
    );
    runner.on('pass', (test) => {
      const file = fileOf(test).replace(/\.test\.ts$/, '');
      passed.set(file, [...(passed.get(file) ?? []), test.fullTitle()]);
    });
    runner.on('pending', (test) => skipped.set(fileOf(test), (skipped.get(fileOf(test)) ?? 0) + 1));
    runner.on('fail', (test, { message, stack = '' }: Error) => {
      failed.push({ file: fileOf(test), title: test.fullTitle(), message, stack: ownLines(stack) });
    });
    let startedAt = performance.now();
    runner.on('suite', ({ parent }) => {
      if (parent?.root) startedAt = performance.now();
    });
    runner.on('suite end', (suite) => {
      if (!suite.parent?.root || suite.file === undefined) return;
      const file = fileOf(suite);
      seconds.set(file, (seconds.get(file) ?? 0) + (performance.now() - startedAt) / 1000);
    });
  });
}

export function sumOfTallies(tallies: readonly Tally[]): Tally {
  const missing = new Map<string, number>();
  for (const [part, tests] of tallies.flatMap((tally) => tally.missing)) {
    missing.set(part, (missing.get(part) ?? 0) + tests);
  }
  return {
    failed: tallies.flatMap(({ failed }) => failed),
    passed: tallies.flatMap(({ passed }) => passed),
    skipped: tallies.flatMap(({ skipped }) => skipped),
    seconds: tallies.flatMap(({ seconds }) => seconds),
    missing: [...missing],
    versions: [...new Map(tallies.flatMap(({ versions }) => versions))],
  };
}

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function countsOf(tally: Tally, folder = ''): Counts {
  const isInside = (file: string) => file.startsWith(folder);
  return {
    passed: tally.passed.reduce((sum, [file, titles]) => (isInside(file) ? sum + titles.length : sum), 0),
    failed: tally.failed.filter(({ file }) => isInside(file)).length,
    skipped: tally.skipped.reduce((sum, [file, tests]) => (isInside(file) ? sum + tests : sum), 0),
  };
}

/** `12 passed, 0 failed, 3 skipped`. */
export const countsText = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;

function fileOf({ file }: { readonly file?: string | undefined }): string {
  return relative(TEST_ROOT, file ?? '');
}

/** The lines of a stack that are in this repository, relative to it. Mocha shortens paths below the working directory. */
function ownLines(stack: string): readonly string[] {
  const prefix = TEST_ROOT.slice(0, -'test'.length);
  return stack
    .split('\n')
    .map((line) => line.trim().replace('file://', '').replace(prefix, ''))
    .filter((line) => line.startsWith('at ') && !/node_modules|node:|\(\//.test(line));
}
