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
export const leeway = (): number => (quick ? 1.5 : 1);

/**
 * The number of rounds, calls or seconds of this run.
 * @param full number in a full run
 * @param least minimum of a quick run; default 3
 */
export function paced(full: number, least = 3): number {
  return quick ? Math.min(full, Math.max(least, Math.ceil(full / SHARE))) : full;
}
