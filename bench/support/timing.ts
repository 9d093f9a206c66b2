import { leeway, paced } from './pace.ts';

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

/** Seconds of one call, repeated for at least `atLeast` seconds. */
export function secondsPerCall(call: () => void, atLeast = 0.05): number {
  let calls = 1;
  for (;;) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) call();
    const seconds = (performance.now() - start) / 1000;
    if (seconds >= atLeast) return seconds / calls;
    calls = Math.max(calls * 2, Math.ceil((calls * atLeast) / Math.max(seconds, 1e-6)));
  }
}

/** Rounds that are not counted, so that the compiler has optimized both. */
const WARM_UP = 4;

/**
 * The ratio of two measurements, taken in turns in one run so that other load affects both: the median of the rounds,
 * after WARM_UP rounds.
 */
export function ratioOf(
  name: string,
  bound: { readonly most: number } | { readonly least: number },
  measured: () => number,
  reference: () => number,
  rounds = 7,
): BenchResult {
  for (let round = 0; round < WARM_UP; round++) {
    measured();
    reference();
  }
  const isMost = 'most' in bound;
  // With an upper bound, the measured time relative to the reference; with a lower bound, the inverse.
  const ratios = Array.from({ length: paced(rounds) }, () => {
    const [mine, theirs] = [measured(), reference()];
    return isMost ? mine / theirs : theirs / mine;
  });
  return summary(name, ratios, bound);
}

/** The median of ratios measured in turns, with their spread and a bound. */
export function summary(
  name: string,
  ratios: readonly number[],
  bound: { readonly most: number } | { readonly least: number },
): BenchResult {
  const sorted = [...ratios].sort((a, b) => a - b);
  const ratio = sorted[sorted.length >>> 1] ?? Number.NaN;
  const spread = [sorted[0] ?? Number.NaN, sorted.at(-1) ?? Number.NaN] as const;
  const isMost = 'most' in bound;
  const limit = Number((isMost ? bound.most * leeway() : bound.least / leeway()).toPrecision(3));
  return isMost
    ? { name, ratio, spread, bound: `<= ${limit}`, holds: ratio <= limit }
    : { name, ratio, spread, bound: `>= ${limit}`, holds: ratio >= limit };
}
