import type { OwnerEntry } from './wire.ts';

/** Number of colours for owners. Further owners reuse them; the letter still distinguishes them. */
export const COLOURS = 6;

/**
 * The number of each owner's colour and letter. A pod keeps its own while others come and go, and its containers share
 * it. A new pod gets the one derived from its name, so that it is the same on every page and, usually, on every node.
 */
export function marksOf(
  owners: readonly OwnerEntry[],
  before?: { readonly owners: readonly OwnerEntry[]; readonly marks: readonly number[] },
): number[] {
  const known = new Map(before?.owners.map(([pod], index) => [pod, before.marks[index]!]));
  const pods = [...new Set(owners.map(([pod]) => pod))];
  const marks = new Map(pods.flatMap((pod) => (known.has(pod) ? [[pod, known.get(pod)!] as const] : [])));
  const used = new Set(marks.values());
  // By name, because the order of a report has no meaning.
  for (const pod of pods.filter((one) => !marks.has(one)).sort()) {
    const mark = freeMark(hashOf(pod) % COLOURS, used);
    used.add(mark);
    marks.set(pod, mark);
  }
  return owners.map(([pod]) => marks.get(pod)!);
}

/**
 * The preferred number if it is free, else another of the first colours, else the preferred colour with a later letter.
 */
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
