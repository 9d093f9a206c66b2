import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work after which other tasks get a turn. Probes and answers wait for no longer than this and a bit. */
const SLICE = 8;

/**
 * Long work in slices: after SLICE milliseconds of it the event loop takes up whatever else has come, so that thousands of
 * objects never hold up a request. Only the work itself is measured, not what is awaited in between.
 */
export interface Slices {
  /** Does one piece of work, then lets others have a turn if it is due. */
  run<T>(work: () => T): Promise<T>;
}

/** @param now milliseconds of a monotonic clock */
export function createSlices(now: () => number = () => performance.now()): Slices {
  let spent = 0;
  return {
    async run(work) {
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
