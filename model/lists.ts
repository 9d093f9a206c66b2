/** The items by their key, in order. */
export function groupBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

const { compare } = new Intl.Collator('en', { numeric: true });

/** Compares names of Kubernetes objects as people sort them: worker-2 before worker-10. */
export function byName<T>(nameOf: (item: T) => string): (a: T, b: T) => number {
  return (a, b) => compare(nameOf(a), nameOf(b));
}

/** Compares by code units, for an order that is the same on every machine. */
export function byText<T>(textOf: (item: T) => string): (a: T, b: T) => number {
  return (a, b) => (textOf(a) < textOf(b) ? -1 : Number(textOf(a) > textOf(b)));
}
