const { compare } = new Intl.Collator('en', { numeric: true });

/** Compares names of Kubernetes objects as people sort them: worker-2 before worker-10. */
export function byName<T>(nameOf: (one: T) => string): (a: T, b: T) => number {
  return (a, b) => compare(nameOf(a), nameOf(b));
}
