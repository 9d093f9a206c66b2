/** The failed duties that wait for a restart, and the listeners. */
export interface Failures {
  readonly current: ReadonlySet<string>;
  set(duty: string, failed: boolean): void;
  /** Calls the listener after each change. @returns a function that stops the calls */
  subscribe(listener: () => void): () => void;
}

/** Starts with no failed duty. */
export function createFailures(): Failures {
  const current = new Set<string>();
  const listeners = new Set<() => void>();
  return {
    current,
    set(duty, failed) {
      if (current.has(duty) === failed) return;
      if (failed) current.add(duty);
      else current.delete(duty);
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
