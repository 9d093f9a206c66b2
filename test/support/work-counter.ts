import { type Profiler, Session } from 'node:inspector';

/**
 * Counts how often the blocks of chosen scripts run: the same input gives the same count on any machine under any load.
 * Work in native code (JSON.parse, regular expressions, fills of arrays) is not included.
 *
 * V8 counts only in functions that it compiles after the start, which is at their first call: start the counter before
 * anything calls the counted code.
 */
export interface WorkCounter {
  /** Executed blocks since the last call. */
  take(): number;
  stop(): void;
}

/** @param counts whether a script counts, by its URL */
export function startWorkCounter(counts: (url: string) => boolean): WorkCounter {
  const session = new Session();
  session.connect();
  const known = new Map<string, boolean>();
  const isCounted = (url: string): boolean => {
    const found = known.get(url) ?? counts(url);
    known.set(url, found);
    return found;
  };
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    take() {
      let sum = 0;
      // In-process sessions answer before `post` returns.
      session.post('Profiler.takePreciseCoverage', (error, answer) => {
        if (error !== null) throw error;
        for (const { url, functions } of answer.result) if (isCounted(url)) sum += sumOf(functions);
      });
      return sum;
    },
    stop() {
      session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}

function sumOf(functions: readonly Profiler.FunctionCoverage[]): number {
  let sum = 0;
  for (const { ranges } of functions) for (const { count } of ranges) sum += count;
  return sum;
}
