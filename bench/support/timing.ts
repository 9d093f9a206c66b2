/** The result of one measurement: a ratio, the smallest and largest of its rounds, and its bound. */
export interface BenchResult {
  readonly name: string;
  readonly ratio: number;
  readonly spread: readonly [number, number];
  /** The form `<= 10` or `>= 20`. */
  readonly bound: string;
  readonly holds: boolean;
}

/** Keeps results alive, so that the compiler does not remove measured code. */
export const sink = { value: 0 };

const WARM_UP_ROUNDS = 4;
const ROUNDS = 7;

/**
 * The time of a measurement over that of a reference, taken in turns in one run so that other load affects both: the
 * median of the rounds, after some that are not counted, so that the compiler has optimized both.
 */
export function ratioOf(name: string, most: number, measured: () => number, reference: () => number): BenchResult {
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    measured();
    reference();
  }
  return summary(
    name,
    Array.from({ length: paced(ROUNDS) }, () => measured() / reference()),
    { most },
  );
}

/** The median of ratios measured in turns, with their spread and a bound. */
export function summary(
  name: string,
  ratios: readonly number[],
  bound: { readonly most: number } | { readonly least: number },
): BenchResult {
  const ratio = median(ratios);
  const spread = [quantile(ratios, 0), quantile(ratios, 1)] as const;
  const isMost = 'most' in bound;
  const limit = Number((isMost ? bound.most * leeway() : bound.least / leeway()).toPrecision(3));
  return isMost
    ? { name, ratio, spread, bound: `<= ${limit}`, holds: ratio <= limit }
    : { name, ratio, spread, bound: `>= ${limit}`, holds: ratio >= limit };
}

/** A quick run takes one SHAREth of the rounds. */
const SHARE = 5;

let quick = false;

/** Makes this process measure quickly, with fewer rounds and therefore a larger spread. */
export function measureQuickly(): void {
  quick = true;
}

/**
 * The factor by which bounds are wider: a quick run has fewer samples, and measures other groups at the same time.
 */
const leeway = (): number => (quick ? 1.5 : 1);

/**
 * The number of rounds, calls or seconds of this run.
 * @param full number in a full run
 * @param least minimum of a quick run; default 3
 */
export function paced(full: number, least = 3): number {
  return quick ? Math.min(full, Math.max(least, Math.ceil(full / SHARE))) : full;
}

/** The q-th quantile, 0 to 1. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);
