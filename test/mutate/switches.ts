import type { Mutant } from './mutants.ts';

/** No mutant is active. */
export const NONE = -1;

declare global {
  /** Called by the sources at each place with a mutant. @returns whether that mutant is the active one */
  var plumblineMutant: ((id: number) => boolean) | undefined;
}

/**
 * The text with all these mutants, each behind a switch: `globalThis.plumblineMutant` is called with its number
 * whenever the place is reached. Without an active one, the program is unchanged.
 */
export function switched(text: string, mutants: readonly (Mutant & { readonly id: number })[]): string {
  const insertions = mutants.flatMap(({ start, end, kind, id, replacement }) => {
    const active = `globalThis.plumblineMutant?.(${id})`;
    const [open, close] =
      kind === 'statement' ? [`{if (!${active}) `, '}'] : [`(${active} ? (${replacement}) : (`, '))'];
    return [
      { at: start, put: open, opens: true, length: end - start, id },
      { at: end, put: close, opens: false, length: end - start, id },
    ];
  });
  // From the end to the start; later insertions at one place are to the left of earlier ones.
  insertions.sort((a, b) => {
    if (a.at !== b.at) return b.at - a.at;
    if (a.opens !== b.opens) return a.opens ? -1 : 1;
    const inner = a.length - b.length || a.id - b.id;
    return a.opens ? inner : -inner;
  });
  return insertions.reduce((done, { at, put }) => done.slice(0, at) + put + done.slice(at), text);
}
