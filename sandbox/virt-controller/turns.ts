/**
 * Work by key: one task at a time for each key, and one more for all requests during the last one. A task that failed
 * or resolved to `refused` is retried with a growing delay, because an API server or a webhook that was down recovers
 * without another change.
 */
export type Turns = ReturnType<typeof createTurns>;

/** First and longest delay before a retry in seconds. Source: client-go, default_rate_limiters.go. */
const FIRST_RETRY = 0.005;
const LAST_RETRY = 1000;

type Work = () => Promise<unknown>;

export function createTurns(onFault: (error: unknown) => void) {
  const busy = new Set<string>();
  const again = new Map<string, Work>();
  const running = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const failures = new Map<string, number>();
  let stopped = false;

  const take = (key: string, work: Work) => {
    if (stopped) return;
    if (busy.has(key)) {
      again.set(key, work);
      return;
    }
    busy.add(key);
    const done = work()
      .catch((error: unknown) => {
        onFault(error);
        return 'refused' as const;
      })
      .then((outcome) => {
        const times = failures.get(key) ?? 0;
        if (outcome !== 'refused') return void failures.delete(key);
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
  const takeLater = (key: string, seconds: number, work: Work) => {
    if (stopped) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      take(key, work);
    }, seconds * 1000);
    timers.add(timer);
  };
  return {
    take,
    /** Runs a task after a delay, unless stopped before. */
    takeLater,
    /** Waits for running tasks; no more are started. */
    async stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}
