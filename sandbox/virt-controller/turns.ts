/**
 * Work by key: never two turns of one key at once, and one more turn for whatever came up during the last. A turn that
 * failed is taken again after a while, which grows: an API server or a webhook that is down comes back without another
 * change.
 */
export interface Turns {
  take(key: string, work: () => Promise<void>): void;
  /** Takes a turn after a while, unless stopped before. */
  takeLater(key: string, seconds: number, work: () => Promise<void>): void;
  /** Waits for the turns under way; no more are taken. */
  stop(): Promise<void>;
}

/** Seconds before a turn that failed is taken again: at first, and at most. Source: client-go, default_rate_limiters.go. */
const FIRST_RETRY = 0.005;
const LAST_RETRY = 1000;

export function createTurns(onFault: (error: unknown) => void): Turns {
  const busy = new Set<string>();
  const again = new Map<string, () => Promise<void>>();
  const running = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const failures = new Map<string, number>();
  let stopped = false;

  const take = (key: string, work: () => Promise<void>) => {
    if (stopped) return;
    if (busy.has(key)) {
      again.set(key, work);
      return;
    }
    busy.add(key);
    const done = work()
      .then(() => void failures.delete(key))
      .catch((error: unknown) => {
        onFault(error);
        const times = failures.get(key) ?? 0;
        failures.set(key, times + 1);
        takeLater(key, Math.min(FIRST_RETRY * 2 ** times, LAST_RETRY), work);
      })
      .finally(() => {
        busy.delete(key);
        running.delete(done);
        const next = again.get(key);
        again.delete(key);
        if (next) take(key, next);
      });
    running.add(done);
  };
  const takeLater = (key: string, seconds: number, work: () => Promise<void>) => {
    if (stopped) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      take(key, work);
    }, seconds * 1000);
    timers.add(timer);
  };
  return {
    take,
    takeLater,
    async stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}
