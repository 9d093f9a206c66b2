import type { CpuSet } from '../../model/cpu-set.ts';

/** Maximum wait of a growth as a multiple of the delay, however often the set changes. */
const MOST_DELAYS = 4;

export interface GrowDebounceDeps {
  /** Seconds without a change after which `onDue` is called. */
  readonly delay: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onDue: () => void;
}

/** Delays a growth until the set of free CPUs has stopped growing. */
export function createGrowDebounce({ delay, now, onDue }: GrowDebounceDeps) {
  let pending: CpuSet | undefined;
  let timer: NodeJS.Timeout | undefined;
  let since = 0;

  const cancel = () => {
    clearTimeout(timer);
    pending = undefined;
  };

  return {
    cancel,
    /** The set that the growth waits for. */
    get pending() {
      return pending;
    },
    /** Requests a growth to this set. A set that differs from the last one restarts the wait. */
    want(cpus: CpuSet) {
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
