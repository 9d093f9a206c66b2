import { setTimeout as delay } from 'node:timers/promises';

/** A step of the demo failed; the message states the expected and the actual result. */
export class StepFailed extends Error {}

/** Calls a function every 20 ms until it returns a result. @throws StepFailed if there is none after `seconds` */
export async function until<T>(
  what: string,
  seconds: number,
  probe: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new StepFailed(`waited ${seconds} s for ${what}`);
    await delay(20);
  }
}

/** @throws StepFailed with the message unless the condition holds */
export function expect(condition: boolean, message: string): asserts condition {
  if (!condition) throw new StepFailed(message);
}
