import type { CpuSet } from '../model/cpu-set.ts';

/** A line of /proc/interrupts or /proc/softirqs, with its counts since boot summed up for each group of CPUs. */
export interface SourceCounts {
  /** The number of a device's interrupt, `LOC`, `NET_RX`. */
  readonly id: string;
  /** What the kernel prints after the counts: chip, trigger and handlers; '' for softirqs. */
  readonly text: string;
  /** In the order of the groups. */
  readonly counts: readonly number[];
}

const SPACE = 32;
const ZERO = 48;
const NINE = 57;

/**
 * Sums the columns of each group; a line without a count for any group is left out. One pass without intermediate
 * strings: with 256 CPUs and 1,500 interrupts the text has 4 MB. Source: kernel/irq/proc.c, fs/proc/softirqs.c.
 */
export function sourceCounts(text: string, groups: readonly CpuSet[]): SourceCounts[] {
  const end = text.indexOf('\n');
  const columns = [...text.slice(0, end).matchAll(/CPU(\d+)/g)].map(([, cpu]) => Number(cpu));
  const groupOf = columns.map((cpu) => groups.findIndex((cpus) => cpus.has(cpu)));
  const sources: SourceCounts[] = [];
  for (let at = end + 1; at > 0 && at < text.length; ) {
    const next = text.indexOf('\n', at);
    const lineEnd = next < 0 ? text.length : next;
    const source = lineCounts(text, at, lineEnd, groupOf, groups.length);
    if (source !== undefined) sources.push(source);
    at = lineEnd + 1;
  }
  return sources;
}

function lineCounts(text: string, from: number, to: number, groupOf: readonly number[], groups: number) {
  const colon = text.indexOf(':', from);
  if (colon < 0 || colon >= to) return undefined;
  const counts = new Array<number>(groups).fill(0);
  let isCounted = false;
  let at = colon + 1;
  for (let column = 0; column < groupOf.length; column++) {
    while (at < to && text.charCodeAt(at) === SPACE) at++;
    let count = 0;
    for (let code = text.charCodeAt(at); at < to && code >= ZERO && code <= NINE; code = text.charCodeAt(++at)) {
      count = count * 10 + code - ZERO;
    }
    const group = groupOf[column] ?? -1;
    if (group < 0 || count === 0) continue;
    counts[group] = (counts[group] ?? 0) + count;
    isCounted = true;
  }
  if (!isCounted) return undefined;
  return { id: text.slice(from, colon).trim(), text: text.slice(at, to).trim().replaceAll(/\s+/g, ' '), counts };
}

/** Seconds since boot in which a group of CPUs handled interrupts; undefined where the kernel does not count them. */
export interface InterruptSeconds {
  readonly hardware: number | undefined;
  readonly soft: number | undefined;
}

/** The unit of /proc/stat on every architecture. */
const TICKS_PER_SECOND = 100;
const IRQ_FIELD = 6;
const SOFTIRQ_FIELD = 7;

/**
 * The columns `irq` and `softirq` of /proc/stat. Without CONFIG_IRQ_TIME_ACCOUNTING the kernel samples at its tick,
 * which never falls into another interrupt: `irq` then stays 0 on the whole machine. Source: kernel/sched/cputime.c.
 */
export function interruptSeconds(text: string, groups: readonly CpuSet[]): InterruptSeconds[] {
  const lines = [...text.matchAll(/^cpu(\d*) .*$/gm)].map(([line, cpu = '']) => ({ cpu, fields: line.split(/ +/) }));
  const isCounted = (field: number) => lines.some(({ cpu, fields }) => cpu === '' && Number(fields[field]) > 0);
  const counted = { hardware: isCounted(IRQ_FIELD), soft: isCounted(SOFTIRQ_FIELD) };
  const sum = (cpus: CpuSet, field: number) => {
    const own = lines.filter(({ cpu }) => cpu !== '' && cpus.has(Number(cpu)));
    return own.reduce((total, { fields }) => total + Number(fields[field] ?? 0), 0) / TICKS_PER_SECOND;
  };
  return groups.map((cpus) => ({
    hardware: counted.hardware ? sum(cpus, IRQ_FIELD) : undefined,
    soft: counted.soft ? sum(cpus, SOFTIRQ_FIELD) : undefined,
  }));
}

/** Seconds from `irq.pressure` of a cgroup: interrupts that hit while one of its tasks ran. Undefined if malformed. */
export function pressureSeconds(text: string): number | undefined {
  const total = /^full .*\btotal=(\d+)$/m.exec(text)?.[1];
  return total === undefined ? undefined : Number(total) / 1e6;
}
