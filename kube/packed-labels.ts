/**
 * Labels as one list of shared strings, each key before its value. An object for each node would need ten times the
 * memory: KubeVirt sets some two hundred labels on a node.
 */
export type PackedLabels = readonly string[];

/** Packs labels. @param intern returns one shared copy of equal strings */
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
