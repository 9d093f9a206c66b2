/**
 * Compares names of Kubernetes objects as people sort them: worker-2 before worker-10. The order is that of
 * `Intl.Collator('en', { numeric: true })`, whose data takes as long to load as a tenth of the start of Node.js.
 */
export function byName<T>(nameOf: (one: T) => string): (a: T, b: T) => number {
  const keys = new Map<string, string>();
  const keyOf = (name: string) => {
    let key = keys.get(name);
    if (key === undefined) {
      key = sortKey(name);
      keys.set(name, key);
    }
    return key;
  };
  return (a, b) => {
    const [first, second] = [keyOf(nameOf(a)), keyOf(nameOf(b))];
    return first < second ? -1 : first > second ? 1 : 0;
  };
}

/** Digits of the length of a number: a name has at most 253 characters. */
const LENGTH = 3;

/** The name with the length in front of each number, so that texts compare as the numbers do. */
function sortKey(name: string): string {
  return name.replace(/\d+/g, (number) => {
    const significant = number.replace(/^0+/, '');
    return String(significant.length).padStart(LENGTH, '0') + significant;
  });
}
