/** Admissions tried before the search gives up: about a millisecond. Pods alike count once, so few ever need as many. */
const MOST_TRIES = 400;

export interface EveryOrder<T, S> {
  readonly items: readonly T[];
  /** Items with the same key are interchangeable. */
  readonly keyOf: (item: T) => string;
  readonly start: S;
  /** The state after an item, or undefined where it is refused. */
  readonly admit: (item: T, state: S) => S | undefined;
  /** States with the same text have the same future; undefined where that is unknown. */
  readonly textOf: (state: S) => string | undefined;
}

/**
 * Whether every item is admitted whichever order they come in.
 *
 * Orders that differ only by items alike, or that reach the same state with the same items left, are tried once. If
 * that is still too much, the answer is no: a promise that cannot be checked is not given.
 */
export function fitsInEveryOrder<T, S>({ items, keyOf, start, admit, textOf }: EveryOrder<T, S>): boolean {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const alike = groups.get(key);
    if (alike) alike.push(item);
    else groups.set(key, [item]);
  }
  const kinds = [...groups.values()];
  const seen = new Set<string>();
  let tries = 0;

  const search = (left: readonly number[], state: S): boolean => {
    const text = textOf(state);
    const situation = text === undefined ? undefined : `${left.join()} ${text}`;
    if (situation !== undefined && seen.has(situation)) return true;
    for (let kind = 0; kind < kinds.length; kind++) {
      const count = left[kind] ?? 0;
      const next = kinds[kind]?.[count - 1];
      if (next === undefined) continue;
      if (++tries > MOST_TRIES) return false;
      const after = admit(next, state);
      if (after === undefined || !search(left.with(kind, count - 1), after)) return false;
    }
    if (situation !== undefined) seen.add(situation);
    return true;
  };
  return search(
    kinds.map((alike) => alike.length),
    start,
  );
}
