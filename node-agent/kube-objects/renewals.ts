import { nextRenewTime, parseMicroTime } from '../../model/lease/renew-time.ts';

/** Makes renewTimes, each later than the one before even if the clock was set back: observers go by the change. */
export interface Renewals {
  /** Counts from a renewal that was read, so that a restarted process goes on after it. */
  seen(renewTime: string | null | undefined): void;
  next(): string;
}

/** @param wallClock milliseconds since the epoch */
export function createRenewals(wallClock: () => number): Renewals {
  let last: string | null | undefined;
  return {
    seen(renewTime) {
      const seen = parseMicroTime(renewTime ?? '');
      if (seen !== undefined && seen > (parseMicroTime(last ?? '') ?? 0n)) last = renewTime;
    },
    next() {
      last = nextRenewTime(last, BigInt(Math.floor(wallClock() * 1000)));
      return last;
    },
  };
}
