/** Values of one label, at most; what comes later is `other`. A series is kept for as long as the process runs. */
const MOST_VALUES = 512;
const LONGEST = 128;

/** The value of a metric's label where others choose it, as the names of physnets. */
export function createBoundedLabel(most = MOST_VALUES): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= most || value.length > LONGEST) return 'other';
    known.add(value);
    return value;
  };
}
