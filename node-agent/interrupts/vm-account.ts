import type { DisturbedVm } from '../../model/agent-status.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { VmReading } from './vm-reading.ts';

type Disturbance = DisturbedVm['sinceStart'];

/** Seconds, also of threads that have ended. Undefined where the kernel does not count, and until threads are known. */
interface Totals extends Pick<VmReading, 'at' | 'interrupts' | 'counts'> {
  readonly runDelay: number | undefined;
  readonly own: number | undefined;
}

/** Seconds of `lastMinute`: two intervals of readings, which may be a little late. */
const WINDOW_SECONDS = 61;
/** Readings of twenty minutes. */
const MAX_HISTORY = 40;
/** In readings. */
const TEN_MINUTES = 20;
const MIN_DISTURBANCE = 0.01;

/**
 * What was taken from one VM. Owner: the duty, from the VM's first reading. Age: as of the last reading. End: with the
 * owner of the CPUs.
 */
export class VmAccount {
  readonly #cpus: CpuSet;
  readonly #quality: DisturbedVm['quality'];
  readonly #start: Totals;
  #vm: VmReading['vm'];
  #threads: VmReading['threads'] = new Map();
  #window: readonly Totals[] = [];
  #history: readonly (number | null)[] = [];

  /** @param first to be added next */
  constructor(cpus: CpuSet, first: VmReading) {
    this.#cpus = cpus;
    this.#quality = first.quality;
    this.#vm = first.vm;
    // The kernel counts for this VM alone if it is exact, otherwise since boot.
    const interrupts = first.quality === 'exact' ? 0 : first.interrupts;
    this.#start = { at: first.at, interrupts, runDelay: 0, own: 0, counts: first.counts };
  }

  add({ at, vm, interrupts, threads, counts }: VmReading): void {
    this.#vm = vm;
    const before = this.#window.at(-1);
    const times = { runDelay: before?.runDelay, own: before?.own };
    for (const [tid, { counter, seconds }] of threads) {
      const last = this.#threads.get(tid)?.seconds ?? 0;
      // A smaller value belongs to a later thread with the same id.
      times[counter] = (times[counter] ?? 0) + (seconds < last ? seconds : seconds - last);
    }
    if (threads.size > 0) this.#threads = threads;
    const recent = this.#window.filter((old) => at - old.at <= WINDOW_SECONDS);
    this.#window = [...recent, { at, interrupts, ...times, counts }];
    if (before === undefined) return;
    this.#history = [...this.#history, this.#shareOf(this.#since(before))].slice(-MAX_HISTORY);
  }

  get vm(): VmReading['vm'] {
    return this.#vm;
  }

  /** The mean share of the last ten minutes; 0 unless it was above 1 % at each reading. */
  get disturbance(): number {
    const shares = this.#history.slice(-TEN_MINUTES).map((share) => share ?? 0);
    if (shares.filter((share) => share > MIN_DISTURBANCE).length < TEN_MINUTES) return 0;
    return shares.reduce((sum, share) => sum + share, 0) / TEN_MINUTES;
  }

  /** The most frequent sources of the last minute. */
  topSources(most: number): { readonly id: string; readonly count: number }[] {
    const before = this.#window[0]?.counts;
    return [...(this.#window.at(-1)?.counts ?? [])]
      .map(([id, count]) => ({ id, count: count - (before?.get(id) ?? 0) }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
      .slice(0, most);
  }

  status(): Omit<DisturbedVm, 'sources'> {
    const [first] = this.#window;
    const lastMinute = first === undefined || this.#window.length < 2 ? null : this.#since(first);
    return {
      ...this.#vm,
      cpus: this.#cpus.toString(),
      quality: this.#quality,
      lastMinute,
      sinceStart: this.#since(this.#start),
      share: lastMinute === null ? null : this.#shareOf(lastMinute),
      history: [...this.#history],
    };
  }

  #since(before: Totals): Disturbance {
    const last = this.#window.at(-1) ?? before;
    return {
      seconds: rounded(last.at - before.at),
      interrupts: difference(before.interrupts, last.interrupts),
      runDelay: difference(before.runDelay, last.runDelay),
      own: difference(before.own, last.own),
    };
  }

  #shareOf({ seconds, interrupts, runDelay }: Disturbance): number | null {
    if (interrupts === null && runDelay === null) return null;
    return rounded(((interrupts ?? 0) + (runDelay ?? 0)) / (seconds * this.#cpus.size));
  }
}

/** Null unless both are known: sums of different threads do not compare. */
function difference(before: number | undefined, after: number | undefined): number | null {
  return before === undefined || after === undefined ? null : rounded(Math.max(0, after - before));
}

/** To microseconds. */
function rounded(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6;
}
