import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';

/** Seconds on this process's monotonic clock; never compare it with another process's. */
export const monotonicSeconds = (): number => performance.now() / 1000;

/** Resolves after `seconds`; rejects with the signal's reason when it is aborted first. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    // The global timer, which tests with virtual time replace.
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, seconds * 1000);
    function onAbort() {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Seconds until the next multiple of the period on this process's clock, at least half a period from now. Periodic work
 * that waits this long shares its wake-ups: an idle agent spends more on waking up than on its checks.
 */
export function secondsUntilTick(periodSeconds: number, nowSeconds = monotonicSeconds()): number {
  return Math.ceil(nowSeconds / periodSeconds + 0.5) * periodSeconds - nowSeconds;
}

/** Repeats the work at the multiples of a period (`secondsUntilTick`). @returns a function that ends it */
export function everyTick(periodSeconds: number, work: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = () => {
    timer = setTimeout(() => {
      // Before the work, which may end the repetition.
      wait();
      work();
    }, secondsUntilTick(periodSeconds) * 1000);
  };
  wait();
  return () => clearTimeout(timer);
}

/** Exponential backoff with full jitter in its upper half; call `reset` after a success. */
export class Backoff {
  readonly #first: number;
  readonly #most: number;
  #next: number;

  constructor({ first = 0.5, most = 30 }: { readonly first?: number; readonly most?: number } = {}) {
    this.#first = first;
    this.#most = most;
    this.#next = first;
  }

  next(): number {
    const wait = this.#next;
    this.#next = Math.min(this.#most, this.#next * 2);
    return wait * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#next = this.#first;
  }
}

/**
 * Runs work under its own signal, which aborts with the first of the signals, after the seconds, and when the work
 * ends. AbortSignal.any would leak 80 bytes into each source (Node.js 20).
 */
export async function underSignals<T>(
  signals: readonly (AbortSignal | undefined)[],
  seconds: number | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const workController = new AbortController();
  const leave: (() => void)[] = [];
  for (const signal of signals) {
    if (signal === undefined) continue;
    if (signal.aborted) workController.abort(signal.reason);
    const follow = () => workController.abort(signal.reason);
    // One listener for each call that is running; this is not a leak.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', follow, { once: true });
    leave.push(() => signal.removeEventListener('abort', follow));
  }
  if (seconds !== undefined) {
    const late = () =>
      workController.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    const timer = setTimeout(late, seconds * 1000).unref();
    leave.push(() => clearTimeout(timer));
  }
  try {
    return await work(workController.signal);
  } finally {
    for (const end of leave) end();
    workController.abort();
  }
}

/** Milliseconds of work after which other tasks get a turn. Probes and answers wait about this long. */
const SLICE_MILLISECONDS = 8;

/** After SLICE milliseconds of work the event loop runs other tasks. Time awaited in between does not count. */
export function createSlices() {
  let spent = 0;
  return {
    async run<T>(work: () => T): Promise<T> {
      const begun = performance.now();
      try {
        return work();
      } finally {
        spent += performance.now() - begun;
        if (spent >= SLICE_MILLISECONDS) {
          await setImmediate();
          spent = 0;
        }
      }
    },
  };
}
