/** The part of the rounds that a quick run plays. */
const SHARE = 5;

let quick = false;

/** From here on this process measures quickly: with fewer rounds, so that the spread is wider. */
export function measureQuickly(): void {
  quick = true;
}

/**
 * @param full rounds, calls or seconds of a whole run
 * @param least of a quick one; default 3
 * @returns how many this run takes
 */
export function paced(full: number, least = 3): number {
  return quick ? Math.min(full, Math.max(least, Math.ceil(full / SHARE))) : full;
}
