import type { OwnerEntry } from './wire.ts';

/** Colours for owners; after the last the first comes again, and the letter still tells them apart. */
export const COLOURS = 6;

/**
 * The number of each owner's colour and letter. A pod keeps its own while others come and go, its containers share it, and
 * a pod that comes gets the one that its name leads to, so that it has the same on every page and, mostly, on every node.
 */
export function marksOf(
  owners: readonly OwnerEntry[],
  before?: { readonly owners: readonly OwnerEntry[]; readonly marks: readonly number[] },
): number[] {
  const known = new Map(before?.owners.map(([pod], index) => [pod, before.marks[index]!]));
  const pods = [...new Set(owners.map(([pod]) => pod))];
  const marks = new Map(pods.flatMap((pod) => (known.has(pod) ? [[pod, known.get(pod)!] as const] : [])));
  const used = new Set(marks.values());
  // By name: the order of a report says nothing.
  for (const pod of pods.filter((one) => !marks.has(one)).sort()) {
    const mark = freeMark(hashOf(pod) % COLOURS, used);
    used.add(mark);
    marks.set(pod, mark);
  }
  return owners.map(([pod]) => marks.get(pod)!);
}

/** The wanted one, else another of the first colours, else the wanted colour under a letter of a later round. */
function freeMark(wanted: number, used: ReadonlySet<number>): number {
  for (let step = 0; step < COLOURS; step++) {
    const mark = (wanted + step) % COLOURS;
    if (!used.has(mark)) return mark;
  }
  let mark = wanted + COLOURS;
  while (used.has(mark)) mark += COLOURS;
  return mark;
}

/** FNV-1a */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}
