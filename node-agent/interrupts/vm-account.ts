import type { DisturbedVm, INTERFERENCE_QUALITIES } from '../../model/agent-status.ts';
import type { CpuSet } from '../../model/cpu-set.ts';

export type Quality = (typeof INTERFERENCE_QUALITIES)[number];

/** What the kernel has counted for a VM at one moment; undefined where it does not count. */
export interface VmReading {
  /** Monotonic seconds. */
  readonly at: number;
  /** Seconds of interrupts since the start of the cgroup (`exact`) or the machine. */
  readonly interrupts: number | undefined;
  readonly quality: Quality;
  /** Seconds since the start of each thread, by thread id; undefined while QEMU's threads are unknown. */
  readonly runDelay: ReadonlyMap<number, number> | undefined;
  readonly nonVcpuTime: ReadonlyMap<number, number> | undefined;
  /** Since boot, by the id of the source. */
  readonly counts: ReadonlyMap<string, number>;
}

/** Seconds. */
interface Amounts {
  readonly interrupts: number | undefined;
  readonly runDelay: number | undefined;
  readonly nonVcpuTime: number | undefined;
}

interface Totals extends Amounts {
  readonly at: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** Seconds of `lastMinute`: two intervals of readings, which may be a little late. */
const WINDOW_SECONDS = 61;
/** Readings of twenty minutes. */
const MAX_HISTORY = 40;
/** In readings. */
const TEN_MINUTES = 20;
const MIN_DISTURBANCE = 0.01;
/** Every kernel samples at least as often as it counts in /proc/stat. */
const SAMPLES_PER_SECOND = 100;

/**
 * What was taken from one VM. Owner: the meter, from the VM's first reading. Age: as of the last reading. End: with the
 * owner of the CPUs; other CPUs, another QEMU or another quality begin a new account.
 */
export class VmAccount {
  readonly #cpus: CpuSet;
  readonly #quality: Quality;
  readonly #start: Totals;
  readonly #runDelay = new ThreadTotal();
  readonly #nonVcpuTime = new ThreadTotal();
  #window: readonly Totals[] = [];
  #history: readonly (number | null)[] = [];

  constructor(cpus: CpuSet, first: VmReading) {
    this.#cpus = cpus;
    this.#quality = first.quality;
    // The kernel counts for this VM alone if it is exact, otherwise since boot.
    const interrupts = first.quality === 'exact' ? 0 : first.interrupts;
    this.#start = { at: first.at, interrupts, runDelay: 0, nonVcpuTime: 0, counts: first.counts };
    this.add(first);
  }

  isOf(cpus: CpuSet, quality: Quality): boolean {
    return this.#cpus.equals(cpus) && this.#quality === quality;
  }

  add({ at, interrupts, runDelay, nonVcpuTime, counts }: VmReading): void {
    const before = this.#window.at(-1);
    const times = { runDelay: this.#runDelay.add(runDelay), nonVcpuTime: this.#nonVcpuTime.add(nonVcpuTime) };
    const recent = this.#window.filter((old) => at - old.at <= WINDOW_SECONDS);
    this.#window = [...recent, { at, interrupts, ...times, counts }];
    if (before === undefined) return;
    this.#history = [...this.#history, this.#shareSince(before) ?? null].slice(-MAX_HISTORY);
  }

  /** Seconds in total, for counters. */
  get totals(): Amounts {
    return between(this.#start, this.#last);
  }

  /** Of the last minute; undefined until there are two readings. */
  get share(): number | undefined {
    return this.#window.length < 2 ? undefined : this.#shareSince(this.#first);
  }

  /** Over the last ten minutes, if it was above 1 % at each reading. */
  get disturbance(): number | undefined {
    const recent = this.#history.slice(-TEN_MINUTES).filter((share) => share !== null);
    if (recent.length < TEN_MINUTES || recent.some((share) => share <= MIN_DISTURBANCE)) return undefined;
    return recent.reduce((sum, share) => sum + share, 0) / recent.length;
  }

  /** The most frequent sources of the last minute. */
  topSources(most: number): { readonly id: string; readonly count: number }[] {
    const before = this.#first.counts;
    const counted = [...this.#last.counts].map(([id, count]) => ({ id, count: count - (before.get(id) ?? 0) }));
    return counted
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
      .slice(0, most);
  }

  status(): Pick<DisturbedVm, 'cpus' | 'quality' | 'lastMinute' | 'sinceStart' | 'share' | 'history'> {
    return {
      cpus: this.#cpus.toString(),
      quality: this.#quality,
      lastMinute: this.#window.length < 2 ? null : this.#disturbanceSince(this.#first),
      sinceStart: this.#disturbanceSince(this.#start),
      share: rounded(this.share),
      history: this.#history.map((share) => rounded(share ?? undefined)),
    };
  }

  get #first(): Totals {
    return this.#window[0] ?? this.#start;
  }

  get #last(): Totals {
    return this.#window.at(-1) ?? this.#start;
  }

  #disturbanceSince(before: Totals): DisturbedVm['sinceStart'] {
    const { interrupts, runDelay, nonVcpuTime } = between(before, this.#last);
    const isSampled = this.#quality === 'softirqs-sampled' && interrupts !== undefined;
    return {
      seconds: rounded(this.#last.at - before.at) ?? 0,
      interrupts: rounded(interrupts),
      interruptsError: rounded(isSampled ? samplingError(interrupts) : undefined),
      runDelay: rounded(runDelay),
      own: rounded(nonVcpuTime),
    };
  }

  #shareSince(before: Totals): number | undefined {
    const { interrupts, runDelay } = between(before, this.#last);
    const counted = [interrupts, runDelay].filter((part) => part !== undefined);
    if (counted.length === 0) return undefined;
    return counted.reduce((sum, part) => sum + part, 0) / ((this.#last.at - before.at) * this.#cpus.size);
  }
}

function between(before: Totals, after: Totals): Amounts {
  return {
    interrupts: difference(before.interrupts, after.interrupts),
    runDelay: difference(before.runDelay, after.runDelay),
    nonVcpuTime: difference(before.nonVcpuTime, after.nonVcpuTime),
  };
}

/** Sums of different threads do not compare: undefined unless both are known. */
function difference(before: number | undefined, after: number | undefined): number | undefined {
  return before === undefined || after === undefined ? undefined : Math.max(0, after - before);
}

/** Twice the standard deviation of a count of samples, in seconds: 95 of 100 measurements are nearer than that. */
function samplingError(seconds: number): number {
  return (2 * Math.sqrt(seconds * SAMPLES_PER_SECOND)) / SAMPLES_PER_SECOND;
}

/** To microseconds. */
function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value * 1e6) / 1e6;
}

/** The sum over threads, including those that have ended. End: with the account. */
class ThreadTotal {
  #last: ReadonlyMap<number, number> = new Map();
  #total: number | undefined;

  /** @returns the total; undefined until a reading had threads */
  add(seconds: ReadonlyMap<number, number> | undefined): number | undefined {
    if (seconds === undefined) return this.#total;
    let total = this.#total ?? 0;
    for (const [tid, value] of seconds) {
      const last = this.#last.get(tid) ?? 0;
      // A smaller value belongs to a later thread with the same id.
      total += value < last ? value : value - last;
    }
    this.#last = seconds;
    this.#total = total;
    return total;
  }
}
