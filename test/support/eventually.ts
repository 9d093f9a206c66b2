import assert from 'node:assert/strict';

/** Seconds that every wait lasts at least before it fails: on a busy machine nothing is quick. */
const PATIENCE = 120;

/**
 * Waits until the check holds.
 * @param most seconds after which the wait fails, where that has to be more than usual
 */
export async function eventually(check: () => boolean | Promise<boolean>, what: string, most = 0): Promise<void> {
  const seconds = Math.max(PATIENCE, most);
  const end = performance.now() + seconds * 1000;
  while (!(await check())) {
    assert.ok(performance.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
