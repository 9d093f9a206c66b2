import { countText } from '../amounts.ts';
import { CpuSet, unionOf } from '../cpu-set.ts';
import { ParseError } from '../errors.ts';

/**
 * Ganeti's cpu_mask: colons separate entries, the first for vCPU 0; an entry is `all`, or CPU ids and ranges. A single
 * entry applies to the whole VM: every vCPU and QEMU's other threads (Ganeti: only the main thread). No entries, or
 * `all` alone, pin nothing. Source: Ganeti, doc/design-cpu-pinning.rst.
 * Stricter than Ganeti where that would use CPUs that the user did not ask for: no empty entry, ASCII digits only, ids
 * up to 65535, at most 4096 entries (QEMU's vCPUs), and `1,1` is one CPU.
 */
export interface CpuMask {
  readonly entries: readonly MaskEntry[];
}

/** Host CPUs of one vCPU; `all` restricts nothing. Never an empty set. */
export type MaskEntry = 'all' | CpuSet;

const ALL: CpuMask = Object.freeze({ entries: Object.freeze(['all' as const]) });

const WHAT = 'CPU mask';
/** The admission policies on the annotation enforce the same limit. */
const MAX_MASK_CHARACTERS = 16_384;
const MAX_ENTRIES = 4096;
/** Sum over the distinct entries of their highest CPU id: the memory that a mask needs. */
const MAX_SPAN_CPUS = 1_048_576;
const BRIEF_CHARACTERS = 80;

/** Empty text is a mask without entries. @throws ParseError naming the wrong entry, before any entry is expanded */
export function parseMask(text: string): CpuMask {
  if (text === '') return { entries: [] };
  if (text.length > MAX_MASK_CHARACTERS)
    throw new ParseError(WHAT, text, `it is longer than ${MAX_MASK_CHARACTERS} characters`);
  const parts = text.split(':');
  if (parts.length > MAX_ENTRIES) throw new ParseError(WHAT, text, `it has more than ${MAX_ENTRIES} entries`);
  const entryByText = new Map<string, MaskEntry>();
  let span = 0;
  const entries = parts.map((part, vcpu) => {
    const parsedBefore = entryByText.get(part);
    if (parsedBefore !== undefined) return parsedBefore;
    const entry = parseEntry(part, vcpu, parts.length, text);
    span += entry === 'all' ? 0 : entry.span;
    if (span > MAX_SPAN_CPUS) throw new ParseError(WHAT, text, 'it has too many different entries with high CPU ids');
    entryByText.set(part, entry);
    return entry;
  });
  return { entries };
}

/** The canonical text: ids ascending, ranges joined, one entry for each original entry. parseMask parses it. */
export function formatMask({ entries }: CpuMask): string {
  const texts = new Map([...new Set(entries)].map((entry) => [entry, `${entry}`]));
  return entries.map((entry) => texts.get(entry)).join(':');
}

const summaries = new WeakMap<CpuMask, ReturnType<typeof summarized>>();

/** Computed once for each mask. */
export function summaryOf(mask: CpuMask) {
  const summary = summaries.get(mask) ?? summarized(mask);
  summaries.set(mask, summary);
  return summary;
}

function summarized(mask: CpuMask) {
  const distinct = [...new Set(mask.entries)];
  return { cpus: unionOf(distinct.filter((entry) => entry !== 'all')), distinct, brief: shortened(mask) };
}

export function briefMask(mask: CpuMask): string {
  return summaryOf(mask).brief;
}

function shortened({ entries }: CpuMask): string {
  // No entry has fewer than one character, and a colon.
  const texts = entries.slice(0, BRIEF_CHARACTERS).map((entry) => (entry === 'all' ? entry : entry.brief));
  const text = texts.join(':');
  if (texts.length === entries.length && text.length <= BRIEF_CHARACTERS) return text;
  return `${text.slice(0, BRIEF_CHARACTERS)}… (${entries.length} entries)`;
}

/** Whether the mask restricts no vCPU. */
export function pinsNothing({ entries }: CpuMask): boolean {
  return entries.every((entry) => entry === 'all');
}

/** Ganeti: "pin the entire VM", "turn off CPU pinning". */
export function isForWholeVm({ entries }: CpuMask): boolean {
  return entries.length <= 1;
}

/** Undefined if the mask has several entries and none for this vCPU. */
export function entryOf({ entries }: CpuMask, vcpu: number): MaskEntry | undefined {
  if (entries.length === 0) return 'all';
  return entries.length === 1 ? entries[0] : entries[vcpu];
}

/** The mask with exactly one entry for each vCPU, if it has several: additional vCPUs run anywhere. */
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

/** What is wrong, or undefined. Call it when the mask or the number of vCPUs changes. */
export function checkCount(mask: CpuMask, vcpus: number): string | undefined {
  const { length } = mask.entries;
  if (length <= 1 || length === vcpus) return undefined;
  return `the CPU mask ${briefMask(mask)} has entries for ${countText(length, 'vCPU')}, but the VM has ${vcpus}: give one entry for all of them, or ${vcpus}`;
}

/**
 * The mask, or `all` if the host lacks its CPUs and the caller replaces a mismatch instead of refusing it. By id: a host
 * with four CPUs may lack CPU 2 and have CPU 7. Call it at each start and for each migration target.
 */
export function maskForHost(
  mask: CpuMask,
  online: CpuSet,
  fixMismatch: boolean,
): { readonly mask: CpuMask; readonly fellBack: boolean } | { readonly fault: string } {
  const absent = summaryOf(mask).cpus.minus(online);
  if (absent.isEmpty) return { mask, fellBack: false };
  if (fixMismatch) return { mask: ALL, fellBack: true };
  const fault = `names CPU ${absent.brief}, which is not online on this host (it has ${online.brief})`;
  return { fault: `the CPU mask ${briefMask(mask)} ${fault}` };
}
