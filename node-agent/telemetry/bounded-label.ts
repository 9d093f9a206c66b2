/** Maximum values of one label; later ones become `other`. A series lives as long as the process. */
const MOST_VALUES = 512;
const LONGEST = 128;

/** Bounds the values of a metric's label that others choose, such as the names of physnets. */
export function createBoundedLabel(most = MOST_VALUES): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= most || value.length > LONGEST) return 'other';
    known.add(value);
    return value;
  };
}
