import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work after which other tasks get a turn. Probes and answers wait about this long. */
const SLICE = 8;

/**
 * Splits long work into slices: after SLICE milliseconds of work the event loop runs other tasks, so that thousands of
 * objects never delay a request. Only the work counts, not the time awaited in between.
 *
 * @param now milliseconds of a monotonic clock
 */
export function createSlices(now: () => number = () => performance.now()) {
  let spent = 0;
  return {
    /** Does one piece of work, then yields to other tasks if a slice is over. */
    async run<T>(work: () => T): Promise<T> {
      const begun = now();
      try {
        return work();
      } finally {
        spent += now() - begun;
        if (spent >= SLICE) {
          await setImmediate();
          spent = 0;
        }
      }
    },
  };
}
