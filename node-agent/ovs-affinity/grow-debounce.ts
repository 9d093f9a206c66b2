import type { CpuSet } from '../../model/cpu-set.ts';

/** A growth waits for so many delays at most, however often there is something new to wait for. */
const MOST_DELAYS = 4;

/** Waits until CPUs have stopped becoming free. */
export interface GrowDebounce {
  /** There is this to grow to. A set other than the last restarts the wait. */
  want(cpus: CpuSet): void;
  cancel(): void;
  /** What is waited for. */
  readonly pending: CpuSet | undefined;
}

export interface GrowDebounceDeps {
  /** Seconds without anything new after which `onDue` is called. */
  readonly delay: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onDue: () => void;
}

export function createGrowDebounce({ delay, now, onDue }: GrowDebounceDeps): GrowDebounce {
  let pending: CpuSet | undefined;
  let timer: NodeJS.Timeout | undefined;
  let since = 0;

  const cancel = () => {
    clearTimeout(timer);
    pending = undefined;
  };

  return {
    cancel,
    get pending() {
      return pending;
    },
    want(cpus) {
      if (pending?.equals(cpus)) return;
      if (pending === undefined) since = now();
      clearTimeout(timer);
      pending = cpus;
      const most = since + MOST_DELAYS * delay * 1000 - now();
      timer = setTimeout(
        () => {
          pending = undefined;
          onDue();
        },
        Math.max(0, Math.min(delay * 1000, most)),
      );
    },
  };
}
