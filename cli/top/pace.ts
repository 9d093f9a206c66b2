/** Seconds between two drawings of a live map. */
export const PACE = 2;
