/**
 * Labels as one list, key before value, of strings that are shared: an object for each node costs ten times that. (A
 * node that KubeVirt labels has some two hundred.)
 */
export type PackedLabels = readonly string[];

/** @param intern keeps one copy of strings that are alike */
export function packLabels(labels: Readonly<Record<string, string>>, intern: (text: string) => string): PackedLabels {
  const packed: string[] = [];
  for (const key in labels) packed.push(intern(key), intern(labels[key] ?? ''));
  return packed;
}

/** The value of a label; undefined if it is absent. */
export function labelIn(packed: PackedLabels, key: string): string | undefined {
  for (let i = 0; i < packed.length; i += 2) if (packed[i] === key) return packed[i + 1];
  return undefined;
}

/** Whether two sets of labels are equal. The same labels in another order count as different. */
export function sameLabels(a: PackedLabels, b: PackedLabels): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
