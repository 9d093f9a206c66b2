import { setTimeout as delay } from 'node:timers/promises';

/** Minimum seconds of every wait before it fails, because a busy machine is slow. */
export const PATIENCE = 120;

const INTERVAL = 25;

/**
 * Repeats until there is an answer, or the check holds; an error counts as no answer yet.
 * @param what for the message of a failed wait
 * @param most the timeout in seconds, if it must be longer than usual
 * @returns the answer
 * @throws Error after that time, with the last error as its cause
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  most = 0,
): Promise<Exclude<T, false | undefined>> {
  const seconds = Math.max(PATIENCE, most);
  const deadline = performance.now() + seconds * 1000;
  let last: unknown;
  for (;;) {
    try {
      const found = await ask();
      if (found !== undefined && found !== false) return found as Exclude<T, false | undefined>;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) throw new Error(`waited ${seconds} s for ${what}`, { cause: last });
    await delay(INTERVAL);
  }
}

/** The same. @returns the seconds that it took */
export async function secondsUntil(what: string, holds: () => boolean | Promise<boolean>, most = 0): Promise<number> {
  const begun = performance.now();
  await until(what, holds, most);
  return (performance.now() - begun) / 1000;
}
