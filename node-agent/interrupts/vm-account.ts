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
  readonly own: ReadonlyMap<number, number> | undefined;
  /** Since boot, by the id of the source. */
  readonly counts: ReadonlyMap<string, number>;
}

interface Totals {
  readonly at: number;
  readonly interrupts: number | undefined;
  readonly runDelay: number | undefined;
  readonly own: number | undefined;
  readonly counts: ReadonlyMap<string, number>;
}

/** Seconds of `lastMinute`: two intervals of readings, which may be a little late. */
const WINDOW_SECONDS = 61;
/** Readings of twenty minutes. */
const MAX_HISTORY = 40;
/** In readings. */
const TEN_MINUTES = 20;
const MIN_DISTURBANCE = 0.01;

/**
 * What was taken from one VM. Owner: the meter, from the VM's first reading. Age: as of the last reading. End: with the
 * owner of the CPUs; other CPUs, another QEMU or another quality begin a new account.
 */
export class VmAccount {
  readonly #cpus: CpuSet;
  readonly #quality: Quality;
  readonly #begun: number;
  /** Interrupts before the account began; 0 if the kernel counts them for this VM alone. */
  readonly #interruptsBefore: number;
  readonly #runDelay = new ThreadTotal();
  readonly #own = new ThreadTotal();
  #window: Totals[] = [];
  #history: (number | null)[] = [];

  constructor(cpus: CpuSet, first: VmReading) {
    this.#cpus = cpus;
    this.#quality = first.quality;
    this.#begun = first.at;
    this.#interruptsBefore = first.quality === 'exact' ? 0 : (first.interrupts ?? 0);
    this.add(first);
  }

  isOf(cpus: CpuSet, quality: Quality): boolean {
    return this.#cpus.equals(cpus) && this.#quality === quality;
  }

  add(reading: VmReading): void {
    const { at, counts } = reading;
    const interrupts = reading.interrupts === undefined ? undefined : reading.interrupts - this.#interruptsBefore;
    const totals = { at, interrupts, runDelay: this.#runDelay.add(reading.runDelay), own: this.#own.add(reading.own) };
    const isFirst = this.#window.length === 0;
    this.#window = [...this.#window.filter((old) => at - old.at <= WINDOW_SECONDS), { ...totals, counts }];
    if (!isFirst) this.#history = [...this.#history, this.#shareSince(this.#window.at(-2))].slice(-MAX_HISTORY);
  }

  /** Seconds in total, for counters. */
  get totals(): Omit<Totals, 'counts'> | undefined {
    return this.#window.at(-1);
  }

  /** Of the last minute; undefined until there are two readings. */
  get share(): number | undefined {
    return this.#shareSince(this.#window[0]) ?? undefined;
  }

  /** Over the last ten minutes, if it was above 1 % at each reading. */
  get disturbance(): number | undefined {
    const recent = this.#history.slice(-TEN_MINUTES).filter((share) => share !== null);
    if (recent.length < TEN_MINUTES || recent.some((share) => share <= MIN_DISTURBANCE)) return undefined;
    return recent.reduce((sum, share) => sum + share, 0) / recent.length;
  }

  /** The most frequent sources of the last minute. */
  topSources(most: number): { readonly id: string; readonly count: number }[] {
    const before = this.#window[0]?.counts;
    const now = this.#window.at(-1)?.counts;
    if (before === undefined || now === undefined || before === now) return [];
    const counted = [...now].map(([id, count]) => ({ id, count: count - (before.get(id) ?? 0) }));
    return counted
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
      .slice(0, most);
  }

  status(): Pick<DisturbedVm, 'cpus' | 'quality' | 'lastMinute' | 'sinceStart' | 'share' | 'history'> {
    const last = this.#window.at(-1);
    const first = this.#window[0];
    const taken = (seconds: number, amount: (of: 'interrupts' | 'runDelay' | 'own') => number | undefined) => ({
      seconds: rounded(seconds) ?? 0,
      interrupts: rounded(amount('interrupts')),
      runDelay: rounded(amount('runDelay')),
      own: rounded(amount('own')),
    });
    const seconds = first === undefined || last === undefined ? 0 : last.at - first.at;
    return {
      cpus: this.#cpus.toString(),
      quality: this.#quality,
      lastMinute: seconds > 0 ? taken(seconds, (of) => difference(first?.[of], last?.[of])) : null,
      sinceStart: taken((last?.at ?? 0) - this.#begun, (of) => last?.[of]),
      share: rounded(this.share),
      history: this.#history.map((share) => rounded(share ?? undefined)),
    };
  }

  #shareSince(before: Totals | undefined): number | null {
    const last = this.#window.at(-1);
    if (before === undefined || last === undefined || before === last) return null;
    const parts = [difference(before.interrupts, last.interrupts), difference(before.runDelay, last.runDelay)];
    const counted = parts.filter((part) => part !== undefined);
    if (counted.length === 0) return null;
    return counted.reduce((sum, part) => sum + part, 0) / ((last.at - before.at) * this.#cpus.size);
  }
}

/** To microseconds. */
function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value * 1e6) / 1e6;
}

/** Sums of different threads do not compare: undefined unless both are known. */
function difference(before: number | undefined, after: number | undefined): number | undefined {
  return before === undefined || after === undefined ? undefined : Math.max(0, after - before);
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
