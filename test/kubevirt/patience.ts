/** Seconds that anything is waited for: a loaded machine is no failure, and what has come is not waited for. */
export const PATIENCE = 180;
