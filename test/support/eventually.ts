import assert from 'node:assert/strict';

/** Waits until the check holds. */
export async function eventually(check: () => boolean | Promise<boolean>, what: string, seconds = 5): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (!(await check())) {
    assert.ok(performance.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
