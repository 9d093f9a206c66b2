import assert from 'node:assert/strict';
import { PATIENCE } from './until.ts';

/** Waits until the check holds. @param most the timeout in seconds, if it must be longer than usual */
export async function eventually(check: () => boolean | Promise<boolean>, what: string, most = 0): Promise<void> {
  const seconds = Math.max(PATIENCE, most);
  const end = performance.now() + seconds * 1000;
  while (!(await check())) {
    assert.ok(performance.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
