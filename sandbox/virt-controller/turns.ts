/** Work by key: never two turns of one key at once, and one more turn for whatever came up during the last. */
export interface Turns {
  take(key: string, work: () => Promise<void>): void;
  /** Takes a turn after a while, unless stopped before. */
  takeLater(key: string, seconds: number, work: () => Promise<void>): void;
  /** Waits for the turns under way; no more are taken. */
  stop(): Promise<void>;
}

export function createTurns(onFault: (error: unknown) => void): Turns {
  const busy = new Set<string>();
  const again = new Map<string, () => Promise<void>>();
  const running = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  let stopped = false;

  const take = (key: string, work: () => Promise<void>) => {
    if (stopped) return;
    if (busy.has(key)) {
      again.set(key, work);
      return;
    }
    busy.add(key);
    const done = work()
      .catch(onFault)
      .finally(() => {
        busy.delete(key);
        running.delete(done);
        const next = again.get(key);
        again.delete(key);
        if (next) take(key, next);
      });
    running.add(done);
  };
  return {
    take,
    takeLater(key, seconds, work) {
      if (stopped) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        take(key, work);
      }, seconds * 1000);
      timers.add(timer);
    },
    async stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}
