/** A quick run takes one SHAREth of the rounds. */
const SHARE = 5;

let quick = false;

/** Makes this process measure quickly, with fewer rounds and therefore a larger spread. */
export function measureQuickly(): void {
  quick = true;
}

/**
 * The factor of a bound on the slowest of many calls: a quick run measures other groups at the same time, which such a
 * call has to wait for.
 */
export const busy = (): number => (quick ? 2 : 1);

/**
 * The number of rounds, calls or seconds of this run.
 * @param full number in a full run
 * @param least minimum of a quick run; default 3
 */
export function paced(full: number, least = 3): number {
  return quick ? Math.min(full, Math.max(least, Math.ceil(full / SHARE))) : full;
}
