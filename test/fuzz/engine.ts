import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { processorTimeOf } from '../support/processor-time.ts';

export interface Played {
  readonly runs: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  /** The smallest input that was judged wrong, and why. */
  readonly failure: { readonly input: unknown; readonly why: string } | undefined;
}
export interface PlayOptions {
  readonly seed: number;
  readonly runs: number;
  readonly seconds?: number;
  /** Limits also the memory for each input. It depends on the heap: only a process of its own can use it. */
  readonly holdMemory?: boolean;
}
export interface Playable extends Pick<Target, 'name' | 'about'> {
  play(options: PlayOptions): Promise<Played>;
  judgeCase(input: unknown): Promise<Verdict>;
}
export function playable<I>(target: Target<I>): Playable {
  const { name, about } = target;
  return {
    name,
    about,
    play: (options) => play(target, options),
    judgeCase: async (input) => target.judge(input as I),
  };
}
/** Feeds a target generated inputs until one is judged wrong, and then makes that one as small as possible. */
async function play<I>(target: Target<I>, { seed, runs, seconds, holdMemory = false }: PlayOptions): Promise<Played> {
  const counts: Record<Verdict, number> = { accepted: 0, refused: 0 };
  const property = fc.asyncProperty(target.inputs, async (input) => {
    counts[await judgeWithinBounds(target, input, holdMemory)]++;
  });
  const details = await fc.check(property, {
    seed,
    numRuns: runs,
    ...(seconds !== undefined && { interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false }),
  });
  const why = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
  const failure = details.failed ? { input: details.counterexample?.[0], why } : undefined;
  return { runs: details.numRuns, counts, failure };
}
/** Limits of a parser and its oracle for an input of this length; wide, as only orders of magnitude matter. */
const MILLISECONDS = { base: 200, each: 0.02 };
const BYTES = { base: 48 * 2 ** 20, each: 2000 };
/** CPU time, so that other programs do not count. Garbage collection does: the best of several tries counts. */
const TRIES = 3;
/** @throws Error if the answer is wrong, or took disproportionate time or memory */
async function judgeWithinBounds<I>(target: Target<I>, input: I, holdMemory: boolean): Promise<Verdict> {
  const size = JSON.stringify(input).length;
  const most = {
    time: MILLISECONDS.base + MILLISECONDS.each * size,
    memory: holdMemory ? BYTES.base + BYTES.each * size : Number.POSITIVE_INFINITY,
  };
  let least = { time: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };
  for (let i = 0; i < TRIES; i++) {
    const before = process.memoryUsage().heapUsed;
    let verdict: Verdict = 'refused';
    const time = await processorTimeOf(async () => {
      verdict = await target.judge(input);
    });
    const memory = process.memoryUsage().heapUsed - before;
    least = { time: Math.min(least.time, time), memory: Math.min(least.memory, memory) };
    if (least.time <= most.time && least.memory <= most.memory) return verdict;
  }
  const used = `${least.time.toFixed(0)} ms and ${(least.memory / 2 ** 20).toFixed(0)} MiB`;
  throw new Error(`took ${used} for ${size} characters`);
}
export interface Case {
  readonly file: string;
  readonly why: string;
  readonly input: unknown;
}
const FOLDER = join(import.meta.dirname, 'cases');
export function casesOf(target: string): Case[] {
  const folder = join(FOLDER, target);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((file) => ({ file, ...(JSON.parse(readFileSync(join(folder, file), 'utf8')) as Omit<Case, 'file'>) }));
}
export function keepCase(target: string, { why, input }: Omit<Case, 'file'>): string {
  const content = `${JSON.stringify({ why, input }, null, 2)}\n`;
  const name = createHash('sha256').update(JSON.stringify(input)).digest('hex').slice(0, 12);
  mkdirSync(join(FOLDER, target), { recursive: true });
  const file = join(FOLDER, target, `${name}.json`);
  writeFileSync(file, content);
  return file;
}
/** The outcome of one input: accepted, or refused as the parser's contract says. */
export type Verdict = 'accepted' | 'refused';
export interface Target<I = unknown> {
  readonly name: string;
  readonly about: string;
  readonly inputs: fc.Arbitrary<I>;
  judge(input: I): Verdict | Promise<Verdict>;
}
export interface ForeignTarget {
  readonly name: string;
  readonly about: string;
  missing(): string | undefined;
  play(runs: number, seed: number): { readonly runs: number; readonly problems: readonly string[] };
}
/** Maximum characters of a message for any input: two quotations of 80, escaped, and the words. */
const MAX_MESSAGE_CHARACTERS = 1500;
/** Calls the parser: an exception must be its own error, with a useful message. @returns undefined if it refused */
export function parsedOrRefused<T>(
  parse: () => T,
  ...refusals: readonly (string | (abstract new (...args: never[]) => Error))[]
): { readonly value: T } | undefined {
  try {
    return { value: parse() };
  } catch (error) {
    const isExpected = refusals.some((refusal) =>
      typeof refusal === 'string' ? (error as Error).name === refusal : error instanceof refusal,
    );
    if (!(error instanceof Error && isExpected)) {
      const names = refusals.map((refusal) => (typeof refusal === 'string' ? refusal : refusal.name));
      assert.fail(`${String(error)} is no ${names.join(' or ')}`);
    }
    assert.ok(error.message.length > 0, 'a refusal without a word');
    assert.ok(error.message.length <= MAX_MESSAGE_CHARACTERS, `a message of ${error.message.length} characters`);
    return undefined;
  }
}
