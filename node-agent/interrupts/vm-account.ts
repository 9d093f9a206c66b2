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
/** Every kernel samples at least as often as it counts in /proc/stat. */
const SAMPLES_PER_SECOND = 100;

/**
 * What was taken from one VM. Owner: the duty, from the VM's first reading. Age: as of the last reading. End: with the
 * owner of the CPUs.
 */
export class VmAccount {
  readonly #cpus: CpuSet;
  readonly #quality: DisturbedVm['quality'];
  readonly #start: Totals;
  #threads: VmReading['threads'] = new Map();
  #window: readonly Totals[] = [];
  #history: readonly (number | null)[] = [];

  /** @param first to be added next */
  constructor(cpus: CpuSet, first: VmReading) {
    this.#cpus = cpus;
    this.#quality = first.quality;
    // The kernel counts for this VM alone if it is exact, otherwise since boot.
    const interrupts = first.quality === 'exact' ? 0 : first.interrupts;
    this.#start = { at: first.at, interrupts, runDelay: 0, own: 0, counts: first.counts };
  }

  add({ at, interrupts, threads, counts }: VmReading): void {
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

  /** Over the last ten minutes, if it was above 1 % at each reading. */
  get disturbance(): number | undefined {
    const recent = this.#history.slice(-TEN_MINUTES).filter((share) => share !== null);
    if (recent.length < TEN_MINUTES || recent.some((share) => share <= MIN_DISTURBANCE)) return undefined;
    return recent.reduce((sum, share) => sum + share, 0) / recent.length;
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

  status(): Pick<DisturbedVm, 'cpus' | 'quality' | 'lastMinute' | 'sinceStart' | 'share' | 'history'> {
    const [first] = this.#window;
    const lastMinute = first === undefined || this.#window.length < 2 ? null : this.#since(first);
    return {
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
    const interrupts = difference(before.interrupts, last.interrupts);
    const isSampled = this.#quality === 'softirqs-sampled' && interrupts !== null;
    return {
      seconds: rounded(last.at - before.at),
      interrupts,
      interruptsError: isSampled ? samplingError(interrupts) : null,
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

/** Twice the standard deviation of a count of samples, in seconds: 95 of 100 measurements are nearer than that. */
function samplingError(seconds: number): number {
  return rounded((2 * Math.sqrt(seconds * SAMPLES_PER_SECOND)) / SAMPLES_PER_SECOND);
}

/** To microseconds. */
function rounded(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6;
}
