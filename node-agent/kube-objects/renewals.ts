import { nextRenewTime, parseMicroTime } from '../../model/lease/renew-time.ts';

/** Creates renewTimes that always increase, even if the clock is set back: observers detect changes. */
export interface Renewals {
  /** Continues after a renewTime that was read, for a restarted process. */
  seen(renewTime: string | null | undefined): void;
  next(): string;
}

/** Creates the counter. @param wallClock milliseconds since the epoch */
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
