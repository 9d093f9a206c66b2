import { FairQueue } from './fair-queue.ts';

/**
 * Runs work by key (namespace/name), for a limited number of keys at a time; namespaces take turns. It never runs twice
 * for one key at once, and runs once more for requests that arrived during the last run.
 * @param work does the work for a key; never rejects
 */
export function createKeyedWork(work: (key: string) => Promise<void>, atATime: number) {
  const queue = new FairQueue<string>();
  const busy = new Set<string>();
  const timers = new Map<string, NodeJS.Timeout>();
  let stopped = false;

  const run = async (key: string): Promise<void> => {
    busy.add(key);
    await work(key);
    busy.delete(key);
    next();
  };
  function next(): void {
    while (!stopped && busy.size < atATime) {
      const key = queue.take((candidate) => !busy.has(candidate));
      if (key === undefined) return;
      void run(key);
    }
  }
  const take = (key: string): void => {
    queue.set(key.split('/', 1)[0] ?? '', key, key);
    next();
  };
  return {
    take,
    /** Runs the work after this many milliseconds; replaces an earlier wait for the key. */
    takeLater(key: string, wait: number) {
      clearTimeout(timers.get(key));
      const timer = setTimeout(() => {
        timers.delete(key);
        take(key);
      }, wait);
      timers.set(key, timer.unref());
    },
    /** Starts no more work. Work that runs is not interrupted. */
    stop() {
      stopped = true;
    },
  };
}
