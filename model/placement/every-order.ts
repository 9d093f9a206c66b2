import { groupBy } from '../lists.ts';

/** About a millisecond. Equal pods count once, so few searches need as many. */
const MAX_TRIES = 400;

interface EveryOrder<T, S> {
  readonly items: readonly T[];
  /** Items with equal keys are interchangeable. */
  readonly keyOf: (item: T) => string;
  readonly start: S;
  /** The state after an item, or undefined if it is refused. */
  readonly admit: (item: T, state: S) => S | undefined;
  /** States with equal texts have the same future. */
  readonly textOf: (state: S) => string;
}

/** Equal items and equal states are tried once. Too many tries: false, because there is no promise without a check. */
export function fitsInEveryOrder<T, S>({ items, keyOf, start, admit, textOf }: EveryOrder<T, S>): boolean {
  const kinds = [...groupBy(items, keyOf).values()];
  const visited = new Set<string>();
  let tries = 0;

  const search = (left: readonly number[], state: S): boolean => {
    const situation = `${left.join()} ${textOf(state)}`;
    if (visited.has(situation)) return true;
    for (let kind = 0; kind < kinds.length; kind++) {
      const count = left[kind] ?? 0;
      const next = kinds[kind]?.[count - 1];
      if (next === undefined) continue;
      if (++tries > MAX_TRIES) return false;
      const after = admit(next, state);
      if (after === undefined || !search(left.with(kind, count - 1), after)) return false;
    }
    visited.add(situation);
    return true;
  };
  return search(
    kinds.map((alike) => alike.length),
    start,
  );
}
