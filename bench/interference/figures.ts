/** What one measuring thread saw: victim.c prints it. */
export interface Watched {
  /** Nanoseconds that it ran. */
  readonly nanos: number;
  /** Nanoseconds of them that it was runnable without its CPU, by the kernel's count. */
  readonly waited: number;
  /** Nanoseconds between two readings of the clock, where it was a microsecond or more. */
  readonly gaps: readonly number[];
}

/** What a contender cost its VM, over all measuring threads. */
export interface Figures {
  /** Share of its time in which the VM had no CPU, 0 to 1. */
  readonly stolen: number;
  /** How long a packet that arrives at a random moment waits until the VM looks at it, in microseconds. */
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  /** Share of arrivals that wait longer than each of DELAYS, 0 to 1. */
  readonly longer: readonly number[];
}

/** Microseconds: the marks of the histogram. */
export const DELAYS = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000] as const;

const sumOf = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0);

/**
 * The share of moments at which an arrival waits longer than this: in a gap, those that come before its last part.
 * @param delay nanoseconds
 * @param nanos the whole time
 */
export function shareLonger(gaps: readonly number[], nanos: number, delay: number): number {
  return sumOf(gaps.map((gap) => Math.max(0, gap - delay))) / nanos;
}

/**
 * The delay that a share of all arrivals does not exceed: the inverse of shareLonger.
 * @param share 0 to 1
 * @returns nanoseconds
 */
export function delayAt(gaps: readonly number[], nanos: number, share: number): number {
  const allowed = (1 - share) * nanos;
  const sorted = gaps.toSorted((a, b) => b - a);
  let sum = 0;
  for (const [i, gap] of sorted.entries()) {
    sum += gap;
    // With the i + 1 longest gaps, the delay d leaves sum - (i + 1) d.
    const delay = (sum - allowed) / (i + 1);
    if (delay >= (sorted[i + 1] ?? 0)) return Math.max(0, delay);
  }
  return 0;
}

/** @throws Error if the kernel does not count what a thread waits */
export function figuresOf(watched: readonly Watched[]): Figures {
  if (watched.some(({ waited }) => waited < 0)) throw new Error('the kernel keeps no /proc/PID/schedstat');
  const nanos = sumOf(watched.map((one) => one.nanos));
  const gaps = watched.flatMap((one) => one.gaps);
  return {
    stolen: sumOf(watched.map(({ waited }) => waited)) / nanos,
    p99: delayAt(gaps, nanos, 0.99) / 1000,
    p999: delayAt(gaps, nanos, 0.999) / 1000,
    max: gaps.reduce((most, gap) => Math.max(most, gap), 0) / 1000,
    longer: DELAYS.map((micros) => shareLonger(gaps, nanos, micros * 1000)),
  };
}
