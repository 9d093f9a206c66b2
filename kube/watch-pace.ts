import type { Logger } from '../runtime/log.ts';
import { Backoff, sleep } from '../runtime/time.ts';
import { isExpired } from './errors.ts';

/** A watch that ends within so many seconds without an event ended at once. */
const SHORT_WATCH = 1;
/** Watches in a row that may end at once without a wait: one that a server closed, and the next whose version expired. */
const FREE_ENDS = 2;

export interface WatchPaceOptions {
  readonly path: string;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** The pauses between watches. */
export interface WatchPace {
  /**
   * Runs one watch. If it ends at once, like others before it, it waits before it returns or throws.
   * @throws what the watch throws
   */
  follow<T>(watch: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** The watch had an event. */
  heard(): void;
}

/**
 * Keeps a proxy that closes watches, or an API server whose versions expire, from getting lists and watches without a
 * pause. After any other failure the caller waits.
 */
export function createWatchPace({ path, log, now }: WatchPaceOptions): WatchPace {
  const backoff = new Backoff();
  let hasEvents = false;
  /** Watches in a row that ended at once without an event. */
  let fruitless = 0;

  const pauseAfter = async (begun: number, signal: AbortSignal): Promise<void> => {
    if (hasEvents || now() - begun >= SHORT_WATCH) {
      fruitless = 0;
      backoff.reset();
      return;
    }
    if (++fruitless <= FREE_ENDS) return;
    const wait = backoff.next();
    log.warn({ path, wait }, 'watches end at once; keeping the cache and retrying');
    await sleep(wait, signal).catch(() => undefined);
  };

  return {
    heard() {
      hasEvents = true;
    },
    async follow(watch, signal) {
      hasEvents = false;
      const begun = now();
      try {
        const result = await watch();
        await pauseAfter(begun, signal);
        return result;
      } catch (error) {
        if (isExpired(error)) await pauseAfter(begun, signal);
        else fruitless = 0;
        throw error;
      }
    },
  };
}
