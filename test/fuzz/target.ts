import assert from 'node:assert/strict';
import type fc from 'fast-check';

/** The outcome of one input: accepted, or refused as the parser's contract says. */
export type Verdict = 'accepted' | 'refused';

/** What the parser alone gets of an input. */
export interface Fed {
  readonly bytes: number;
  /** Calls the parser and nothing else. What it throws is a refusal. */
  parse(): unknown;
}

/**
 * How much work the parser may have with an input, as the number of blocks of code that it runs: `base` and `each` byte.
 * Both are three times the most that was seen, of short inputs and of long ones.
 */
export interface WorkBound {
  readonly base: number;
  readonly each: number;
}

/** A parser, what it is fed, and how its answers are judged. */
export interface Target<I = unknown> {
  readonly name: string;
  readonly about: string;
  /** Inputs are JSON, so that one can be kept as a case. */
  readonly inputs: fc.Arbitrary<I>;
  /** @throws Error when the parser did what it must not */
  judge(input: I): Verdict | Promise<Verdict>;
  /** What of an input is counted. */
  fed(input: I): Fed;
  readonly work: WorkBound;
}

/** One that generates and judges by itself, in another process. */
export interface ForeignTarget {
  readonly name: string;
  readonly about: string;
  /** Why it cannot run here; undefined if it can. */
  missing(): string | undefined;
  play(runs: number, seed: number): { readonly runs: number; readonly problems: readonly string[] };
}

/** A text that is all that the parser gets. */
export const fedText =
  (parse: (text: string) => unknown) =>
  (text: string): Fed => ({ bytes: Buffer.byteLength(text), parse: () => parse(text) });

/** Characters that a message may have, however long the input is: two quotations of 80, escaped, and the words. */
const LONGEST_MESSAGE = 1500;

/**
 * Calls the parser. What it throws must be its own error, with a message that says something and is bounded.
 * @returns the parsed value, or undefined where the input was refused
 */
export function parsedOrRefused<T>(
  parse: () => T,
  ...refusals: readonly (abstract new (
    ...args: never[]
  ) => Error)[]
): { readonly value: T } | undefined {
  try {
    return { value: parse() };
  } catch (error) {
    const names = refusals.map(({ name }) => name).join(' or ');
    if (!(error instanceof Error && refusals.some((refusal) => error instanceof refusal))) {
      assert.fail(`${String(error)} is no ${names}`);
    }
    assert.ok(error.message.length > 0, 'a refusal without a word');
    assert.ok(error.message.length <= LONGEST_MESSAGE, `a message of ${error.message.length} characters`);
    return undefined;
  }
}
