import assert from 'node:assert/strict';
import type fc from 'fast-check';

/** The outcome of one input: accepted, or refused as the parser's contract says. */
export type Verdict = 'accepted' | 'refused';

/** A parser, its inputs, and the check of its answers. */
export interface Target<I = unknown> {
  readonly name: string;
  readonly about: string;
  /** Inputs are JSON, so that one can be saved as a case. */
  readonly inputs: fc.Arbitrary<I>;
  /** @throws Error if the parser violated its contract */
  judge(input: I): Verdict | Promise<Verdict>;
}

/** A target that generates and judges in another process. */
export interface ForeignTarget {
  readonly name: string;
  readonly about: string;
  /** The reason why it cannot run here; undefined if it can. */
  missing(): string | undefined;
  play(runs: number, seed: number): { readonly runs: number; readonly problems: readonly string[] };
}

/** Maximum characters of a message for any input: two quotations of 80, escaped, and the words. */
const MAX_MESSAGE_CHARACTERS = 1500;

/**
 * Calls the parser. An exception must be its own error, with a useful message of limited length.
 * @returns the parsed value, or undefined if the input was refused
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
    assert.ok(error.message.length <= MAX_MESSAGE_CHARACTERS, `a message of ${error.message.length} characters`);
    return undefined;
  }
}
