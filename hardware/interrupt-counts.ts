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

/** Sums the columns of each group; a line without a count for any is left out. Source: kernel/irq/proc.c, fs/proc/softirqs.c. */
export function sourceCounts(text: string, groups: readonly CpuSet[]): SourceCounts[] {
  const [head = '', ...lines] = text.split('\n');
  const columns = [...head.matchAll(/CPU(\d+)/g)].map(([, cpu]) => groups.findIndex((cpus) => cpus.has(Number(cpu))));
  return lines.flatMap((line) => {
    const [id = '', ...fields] = line.trim().split(/ +/);
    const counts = groups.map(() => 0);
    // Lines such as ERR have one count for all CPUs.
    const most = Math.min(columns.length, fields.length);
    for (let column = 0; column < most; column++) {
      const group = columns[column] ?? -1;
      if (group >= 0) counts[group] = (counts[group] ?? 0) + Number(fields[column]);
    }
    if (counts.every((count) => count === 0)) return [];
    return [{ id: id.replace(/:$/, ''), text: fields.slice(columns.length).join(' '), counts }];
  });
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
  const lines = [...text.matchAll(/^cpu(\d*) .*$/gm)].map(([line, cpu]) => ({ cpu, fields: line.split(/ +/) }));
  const total = lines.find(({ cpu }) => cpu === '');
  const seconds = (cpus: CpuSet, field: number) => {
    if (!(Number(total?.fields[field]) > 0)) return undefined;
    const cpuLines = lines.filter(({ cpu }) => cpu !== '' && cpus.has(Number(cpu)));
    return cpuLines.reduce((sum, { fields }) => sum + Number(fields[field] ?? 0), 0) / TICKS_PER_SECOND;
  };
  return groups.map((cpus) => ({ hardware: seconds(cpus, IRQ_FIELD), soft: seconds(cpus, SOFTIRQ_FIELD) }));
}

/** Seconds from `irq.pressure` of a cgroup: interrupts that hit while one of its tasks ran. Undefined if malformed. */
export function pressureSeconds(text: string): number | undefined {
  const total = /^full .*\btotal=(\d+)$/m.exec(text)?.[1];
  return total === undefined ? undefined : Number(total) / 1e6;
}
