/**
 * Seconds on this process's monotonic clock, for durations and deadlines. Never compare it with another process's
 * clock.
 */
export function monotonicSeconds(): number {
  return performance.now() / 1000;
}

/** Resolves after `seconds`; rejects with the signal's reason when it is aborted first. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, seconds * 1000);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

export interface BackoffOptions {
  /** Seconds before the first retry. Default 0.5. */
  readonly first?: number;
  /** The longest wait in seconds. Default 30. */
  readonly most?: number;
}

/** Exponential backoff with full jitter in its upper half; call `reset` after a success. */
export class Backoff {
  readonly #first: number;
  readonly #most: number;
  #next: number;

  constructor({ first = 0.5, most = 30 }: BackoffOptions = {}) {
    this.#first = first;
    this.#most = most;
    this.#next = first;
  }

  /** Seconds to wait before the next try. */
  next(): number {
    const wait = this.#next;
    this.#next = Math.min(this.#most, this.#next * 2);
    return wait * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#next = this.#first;
  }
}
