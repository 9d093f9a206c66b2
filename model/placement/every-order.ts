/**
 * Admissions to try before the search gives up, which take about a millisecond. Equal pods count once, so few searches
 * need as many.
 */
const MOST_TRIES = 400;

export interface EveryOrder<T, S> {
  readonly items: readonly T[];
  /** Items with equal keys are interchangeable. */
  readonly keyOf: (item: T) => string;
  readonly start: S;
  /** The state after an item, or undefined if it is refused. */
  readonly admit: (item: T, state: S) => S | undefined;
  /** States with equal texts have the same future; undefined if unknown. */
  readonly textOf: (state: S) => string | undefined;
}

/**
 * Whether every item is admitted in every order.
 *
 * It tries orders only once that differ by equal items, or that reach the same state with the same remaining items. If
 * the number of tries is still too high, the result is false: there is no promise without a check.
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
