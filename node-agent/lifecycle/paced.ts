export interface PacedOptions {
  readonly work: () => void;
  /** Minimum seconds from a request to the work. */
  readonly settle: number;
  /** The pause after a run, as a multiple of the run's duration. */
  readonly rest: number;
}

/** Limits how often requested work runs: a busy source of requests must not keep the agent busy. */
export function createPaced({ work, settle, rest }: PacedOptions) {
  let timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds. */
  let notBefore = 0;

  const now = () => {
    const begun = performance.now();
    work();
    const ended = performance.now();
    notBefore = ended + rest * (ended - begun);
  };

  return {
    now,
    /** Runs the work soon; several requests until then cause one run. */
    soon() {
      timer ??= setTimeout(
        () => {
          timer = undefined;
          now();
        },
        Math.max(settle * 1000, notBefore - performance.now()),
      );
    },
    cancel() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
