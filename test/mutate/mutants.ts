import { createHash } from 'node:crypto';
import { mutantsOfC } from './c.ts';
import { mutantsOfTypeScript } from './typescript.ts';

/** One change to a source text that a test should notice. */
export interface Mutant {
  /** Character offsets of the replaced text; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** The kind of change: `&& to ||`. */
  readonly operator: string;
  /** A probe wraps an expression or precedes a statement. */
  readonly kind: 'expression' | 'statement';
}

/** A mutant of a file of the project. */
export interface Placed extends Mutant {
  /** Path below the project's root. */
  readonly file: string;
  /** 1 is the first. */
  readonly line: number;
  /** The source line at its start, without surrounding white space. */
  readonly code: string;
  /** The replaced text. */
  readonly was: string;
  /** The number of earlier mutants with the same file, line, text and kind. */
  readonly nth: number;
}

/** Every mutant of a source file, in the order of the text. */
export function placedMutants(file: string, text: string): Placed[] {
  const mutants = file.endsWith('.c') ? mutantsOfC(text) : mutantsOfTypeScript(text);
  const seen = new Map<string, number>();
  return mutants
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map((mutant) => {
      const { start, end } = mutant;
      const lineEnd = text.indexOf('\n', start);
      const code = text.slice(text.lastIndexOf('\n', start - 1) + 1, lineEnd < 0 ? undefined : lineEnd).trim();
      const line = text.slice(0, start).split('\n').length;
      const placed = { ...mutant, file, line, code, was: text.slice(start, end), nth: 0 };
      const nth = seen.get(nameOf(placed)) ?? 0;
      seen.set(nameOf(placed), nth + 1);
      return { ...placed, nth };
    });
}

/** The identity of a mutant that stays the same while the rest of its file changes. */
export const nameOf = ({ file, code, was, operator, nth }: Placed): string =>
  JSON.stringify([file, code, was, operator, nth]);

/**
 * The mutants in an order from the seed; the place of a mutant depends only on itself, so that edits shift no others.
 */
export function shuffled(mutants: readonly Placed[], seed: number): Placed[] {
  const key = (one: Placed) =>
    createHash('sha256')
      .update(`${seed} ${nameOf(one)}`)
      .digest('hex');
  return mutants
    .map((one) => ({ one, key: key(one) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ one }) => one);
}

/** The text with the mutant in it. */
export const mutated = (text: string, { start, end, replacement }: Mutant): string =>
  text.slice(0, start) + replacement + text.slice(end);
