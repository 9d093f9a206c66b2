/** Work that others can ask for more often than it may be done: a busy neighbour must not keep the agent busy. */
export interface Paced {
  /** Does it at once. */
  now(): void;
  /** Does it soon; any number of requests until then are one. */
  soon(): void;
  cancel(): void;
}

export interface PacedOptions {
  readonly work: () => void;
  /** Seconds from a request to the work, at least. */
  readonly settle: number;
  /** How many times as long as the work took must pass until a request leads to it again. */
  readonly rest: number;
}

export function createPaced({ work, settle, rest }: PacedOptions): Paced {
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
