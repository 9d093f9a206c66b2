import { CpuSet } from '../cpu-set.ts';
import { ParseError } from '../errors.ts';

/**
 * Ganeti's cpu_mask: which host CPUs each vCPU may run on.
 *
 * Entries stand between colons, the first for vCPU 0; a single entry is for every vCPU. An entry is `all`, or CPU ids
 * and ranges between commas. No entry at all, and the single entry `all`, pin nothing.
 * Source: Ganeti, doc/design-cpu-pinning.rst.
 *
 * Stricter than Ganeti's own parser, each time because what it accepts comes out as something nobody asked for:
 * - An empty entry (`1:`, `:`, `1::2`) is refused; Ganeti reads no CPUs there and fails later, or pins to all.
 * - Digits only: no sign (`+1`), no blank (`1, 2`), no underscore (`1_0` is ten in Python), no other scripts' digits.
 * - CPU ids end at 65535, far above any kernel's; Ganeti expands `0-999999999` in memory.
 * - At most 4096 entries, the most vCPUs a QEMU machine has.
 * - An entry is a set: `1,1` is one CPU. Ganeti counts it as two where LXC wants as many CPUs as vCPUs.
 * Wider in one point: one entry is applied to every vCPU thread, where Ganeti sets the main thread alone, which leaves
 * vCPU threads that exist already as they were.
 */
export interface CpuMask {
  readonly entries: readonly MaskEntry[];
}

/** Host CPUs of one vCPU; `all` restricts nothing. Never an empty set. */
export type MaskEntry = 'all' | CpuSet;

export const ALL: CpuMask = Object.freeze({ entries: Object.freeze(['all' as const]) });

const WHAT = 'CPU mask';
const LONGEST = 65_536;
const MOST_ENTRIES = 4096;

/**
 * Reads a mask. Empty text is a mask without entries.
 * @throws ParseError naming the entry that is wrong, before anything is expanded
 */
export function parseMask(text: string): CpuMask {
  if (text === '') return { entries: [] };
  if (text.length > LONGEST) throw new ParseError(WHAT, text, `it is longer than ${LONGEST} characters`);
  const parts = text.split(':');
  if (parts.length > MOST_ENTRIES) throw new ParseError(WHAT, text, `it has more than ${MOST_ENTRIES} entries`);
  return { entries: parts.map((part, vcpu) => parseEntry(part, vcpu, parts.length, text)) };
}

/** The canonical text: ids ascending, ranges joined, entries as many as there were. parseMask reads it back. */
export function formatMask({ entries }: CpuMask): string {
  return entries.map(formatEntry).join(':');
}

/** Whether the mask leaves every vCPU where it was. */
export function pinsNothing({ entries }: CpuMask): boolean {
  return entries.every((entry) => entry === 'all');
}

/** The entry of a vCPU: the only one, or the one at its index. Undefined beyond the last of several. */
export function entryOf({ entries }: CpuMask, vcpu: number): MaskEntry | undefined {
  return entries.length === 0 ? 'all' : entries.length === 1 ? entries[0] : entries[vcpu];
}

function parseEntry(part: string, vcpu: number, of: number, text: string): MaskEntry {
  if (part === 'all') return part;
  const where = of === 1 ? '' : `entry ${vcpu + 1} (for vCPU ${vcpu}) `;
  if (part === '') throw new ParseError(WHAT, text, `${where}is empty; write "all" for a vCPU that may run anywhere`);
  if (!/^[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*$/.test(part)) {
    throw new ParseError(WHAT, text, `${where}must be "all", or CPU ids and ranges separated by commas, as in 0-3,8`);
  }
  return CpuSet.parse(part);
}

function formatEntry(entry: MaskEntry): string {
  return entry === 'all' ? entry : entry.toString();
}
