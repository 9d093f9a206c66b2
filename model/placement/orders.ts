/** Up to so many pods every order is tried: 4! = 24. */
const MAX_EXHAUSTIVE = 4;

/**
 * The orders in which a kubelet might admit the pods in flight and one more. All of them while they are few; beyond
 * that those that differ most: the new one first, in the middle, by size either way.
 */
export function* admissionOrders<T>(
  inFlight: readonly T[],
  newcomer: T,
  sizeOf: (item: T) => number,
): Generator<readonly T[]> {
  const all = [...inFlight, newcomer];
  if (new Set(all.map(sizeOf)).size === 1 && all.length > MAX_EXHAUSTIVE) {
    yield [newcomer, ...inFlight];
    yield all;
    return;
  }
  if (all.length <= MAX_EXHAUSTIVE) {
    yield* permutations(all);
    return;
  }
  const middle = all.length >>> 1;
  const ascending = [...all].sort((a, b) => sizeOf(a) - sizeOf(b));
  yield all;
  yield [newcomer, ...inFlight];
  yield [...inFlight.slice(0, middle), newcomer, ...inFlight.slice(middle)];
  yield ascending;
  yield ascending.toReversed();
}

function* permutations<T>(items: readonly T[]): Generator<readonly T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of permutations(items.toSpliced(index, 1))) yield [item, ...rest];
  }
}
