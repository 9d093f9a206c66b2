/** Milliseconds until the first retry; each later one waits twice as long, up to LONGEST. */
const FIRST = 1000;
const LONGEST = 60_000;
/** Maximum keys; beyond that, the one that failed longest ago is forgotten. */
const MOST = 5000;

/** Retries failed work with increasing pauses. The number of keys and the pause are bounded. */
export function createRetries() {
  const keys = new Map<string, { readonly failures: number; timer: NodeJS.Timeout | undefined }>();
  const forget = (key: string): void => {
    clearTimeout(keys.get(key)?.timer);
    keys.delete(key);
  };
  return {
    /** Schedules a retry of the key. @returns its number of consecutive failures */
    failed(key: string, again: () => void) {
      const failures = (keys.get(key)?.failures ?? 0) + 1;
      forget(key);
      const [oldest] = keys.keys();
      if (keys.size >= MOST && oldest !== undefined) forget(oldest);
      const wait = Math.min(LONGEST, FIRST * 2 ** (failures - 1));
      const entry: { failures: number; timer: NodeJS.Timeout | undefined } = { failures, timer: undefined };
      entry.timer = setTimeout(() => {
        entry.timer = undefined;
        again();
      }, wait).unref();
      keys.set(key, entry);
      return failures;
    },
    /** Whether the key waits for its next retry. */
    isWaiting: (key: string) => keys.get(key)?.timer !== undefined,
    forget,
    stop() {
      for (const key of [...keys.keys()]) forget(key);
    },
  };
}
