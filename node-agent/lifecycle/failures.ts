/** The failed duties that wait for a restart, and the listeners. */
export type Failures = ReturnType<typeof createFailures>;

/** Starts with no failed duty. */
export function createFailures() {
  const current = new Set<string>();
  const listeners = new Set<() => void>();
  return {
    current: current as ReadonlySet<string>,
    set(duty: string, failed: boolean) {
      if (current.has(duty) === failed) return;
      if (failed) current.add(duty);
      else current.delete(duty);
      for (const listener of listeners) listener();
    },
    /** Calls the listener after each change. @returns a function that stops the calls */
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
