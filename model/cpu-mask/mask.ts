import { CpuSet, unionOf } from '../cpu-set.ts';
import { ParseError } from '../errors.ts';

/**
 * Ganeti's cpu_mask: which host CPUs each vCPU may run on.
 *
 * Entries stand between colons, the first for vCPU 0; a single entry is for the VM as a whole: every vCPU, and QEMU's other
 * threads. An entry is `all`, or CPU ids and ranges between commas. No entry at all, and the single entry `all`, pin nothing.
 * Source: Ganeti, doc/design-cpu-pinning.rst.
 *
 * Stricter than Ganeti's own parser, each time because what it accepts results in CPUs that the user did not ask for:
 * - An empty entry (`1:`, `:`, `1::2`) is refused; Ganeti reads no CPUs there and fails later, or pins to all.
 * - Digits only: no sign (`+1`), no blank (`1, 2`), no underscore (`1_0` is ten in Python), no other scripts' digits.
 * - CPU ids end at 65535, far above any kernel's; Ganeti expands `0-999999999` in memory.
 * - At most 4096 entries, the most vCPUs a QEMU machine has.
 * - An entry is a set: `1,1` is one CPU. Ganeti counts it as two where LXC wants as many CPUs as vCPUs.
 * Wider in one point: one entry is applied to every thread of the VM, where Ganeti sets the main thread alone, which leaves
 * threads that exist already as they were.
 */
export interface CpuMask {
  readonly entries: readonly MaskEntry[];
}

/** Host CPUs of one vCPU; `all` restricts nothing. Never an empty set. */
export type MaskEntry = 'all' | CpuSet;

export const ALL: CpuMask = Object.freeze({ entries: Object.freeze(['all' as const]) });

const WHAT = 'CPU mask';
/** Characters. The admission policies on the annotation hold it to the same. */
export const LONGEST_MASK = 16_384;
const MOST_ENTRIES = 4096;
/**
 * CPU ids up to the highest, added up over the different entries: what a mask takes in memory. A thousand vCPUs on a host of
 * a thousand CPUs take that much.
 */
const MOST_SPAN = 1_048_576;
/** Characters of a mask that a message shows. */
const BRIEF = 80;

/**
 * Reads a mask. Empty text is a mask without entries.
 * @throws ParseError naming the entry that is wrong, before anything is expanded
 */
export function parseMask(text: string): CpuMask {
  if (text === '') return { entries: [] };
  if (text.length > LONGEST_MASK) throw new ParseError(WHAT, text, `it is longer than ${LONGEST_MASK} characters`);
  const parts = text.split(':');
  if (parts.length > MOST_ENTRIES) throw new ParseError(WHAT, text, `it has more than ${MOST_ENTRIES} entries`);
  const known = new Map<string, MaskEntry>();
  let span = 0;
  const entries = parts.map((part, vcpu) => {
    const found = known.get(part);
    if (found !== undefined) return found;
    const entry = parseEntry(part, vcpu, parts.length, text);
    span += entry === 'all' ? 0 : entry.span;
    if (span > MOST_SPAN) throw new ParseError(WHAT, text, 'it has too many different entries with high CPU ids');
    known.set(part, entry);
    return entry;
  });
  return { entries };
}

/** The canonical text: ids ascending, ranges joined, entries as many as there were. parseMask reads it back. */
export function formatMask({ entries }: CpuMask): string {
  const texts = new Map([...new Set(entries)].map((entry) => [entry, `${entry}`]));
  return entries.map((entry) => texts.get(entry)).join(':');
}

/** What follows from a mask on any host, worked out once for each mask. */
export interface MaskSummary {
  /** Every host CPU that it names. */
  readonly cpus: CpuSet;
  /** Its entries, each once. */
  readonly distinct: readonly MaskEntry[];
  /** The canonical text for messages: whole if it is short, else its beginning and the number of entries. */
  readonly brief: string;
}

const summaries = new WeakMap<CpuMask, MaskSummary>();

/** The CPUs, the distinct entries and a short text of a mask, computed once for each mask. */
export function summaryOf(mask: CpuMask): MaskSummary {
  let summary = summaries.get(mask);
  if (summary === undefined) {
    const distinct = [...new Set(mask.entries)];
    const cpus = unionOf(distinct.filter((entry): entry is CpuSet => entry !== 'all'));
    summary = { cpus, distinct, brief: shortened(mask) };
    summaries.set(mask, summary);
  }
  return summary;
}

/** The mask as a message shows it. */
export function briefMask(mask: CpuMask): string {
  return summaryOf(mask).brief;
}

function shortened({ entries }: CpuMask): string {
  const shown: string[] = [];
  let length = 0;
  for (const entry of entries) {
    if (length > BRIEF) break;
    const text = entry === 'all' ? entry : entry.brief;
    length += text.length + 1;
    shown.push(text);
  }
  const text = shown.join(':');
  if (shown.length === entries.length && text.length <= BRIEF) return text;
  return `${text.slice(0, BRIEF)}… (${entries.length} entries)`;
}

/** Whether the mask restricts no vCPU. */
export function pinsNothing({ entries }: CpuMask): boolean {
  return entries.every((entry) => entry === 'all');
}

/**
 * Whether the mask is for the VM as a whole, all threads of its process, rather than for its vCPUs one by one. Ganeti: "pin
 * the entire VM", "turn off CPU pinning".
 */
export function isForWholeVm({ entries }: CpuMask): boolean {
  return entries.length <= 1;
}

/** The entry of a vCPU: the only one, or the one at its index. Undefined beyond the last of several. */
export function entryOf({ entries }: CpuMask, vcpu: number): MaskEntry | undefined {
  return entries.length === 0 ? 'all' : entries.length === 1 ? entries[0] : entries[vcpu];
}

/** A mask of several entries with just as many as there are vCPUs: further ones run anywhere. */
export function maskForVcpus(mask: CpuMask, vcpus: number): CpuMask {
  const { entries } = mask;
  if (entries.length <= 1 || entries.length === vcpus) return mask;
  return { entries: Array.from({ length: vcpus }, (_, vcpu) => entries[vcpu] ?? 'all') };
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
