/**
 * Tells from a lease whether the one who renews it is alive, without comparing clocks.
 *
 * What counts is not what renewTime says but that it keeps *changing*, and when this process saw it change by its own
 * monotonic clock. A renewTime that was there at the first look proves nothing: it may have been there for a week.
 *
 * Invariants
 * - A read that fails changes nothing: alive lasts until the last seen change + duration, then it is unknown.
 * - dead needs an answer, at or after that moment, which brought no change. A lease that was watched for a whole duration
 *   and never changed is dead as well.
 * - Only a change makes alive of anything.
 */

/** One look at the lease. */
export type LeaseReading =
  /** undefined: the lease is there and was never renewed. */
  | { readonly kind: 'read'; readonly renewTime: string | undefined }
  /** The API server answered that there is no such lease. */
  | { readonly kind: 'missing' }
  /** The API server could not be asked. */
  | { readonly kind: 'failed' };

/** What an observer remembers. Times are seconds of one monotonic clock. */
export interface LeaseObservation {
  /** When the API server first answered; undefined if it has not. */
  readonly since: number | undefined;
  readonly renewTime: string | undefined;
  /** When renewTime was last seen to have changed. */
  readonly changedAt: number | undefined;
  /** Changes in a row, each within a duration of the one before. */
  readonly changes: number;
  /** When the API server last answered. */
  readonly answeredAt: number | undefined;
}

export interface ObserverOptions {
  /** Seconds that one renewal counts. */
  readonly duration: number;
  /**
   * Changes in a row before a lease counts as alive: 1 by default. 2 where another program's host side writes the lease
   * once at its own start, which says nothing about the DPU.
   */
  readonly proof?: number;
}

export type LeaseState =
  /** renewTime has changed within the duration. */
  | 'alive'
  /** Too few changes seen yet, and not watched for long enough to call it dead. */
  | 'unproven'
  /** An answer has shown no change for a whole duration. */
  | 'dead'
  /** No change was seen for a whole duration, and no answer says that there was none. */
  | 'unknown';

export interface LeaseVerdict {
  readonly state: LeaseState;
  /** Seconds since the last change was seen; undefined if none was. */
  readonly age: number | undefined;
  /** Monotonic second at which the state turns by itself if nothing more is read; undefined if it does not. */
  readonly until: number | undefined;
}

export const NOTHING_OBSERVED: LeaseObservation = Object.freeze({
  since: undefined,
  renewTime: undefined,
  changedAt: undefined,
  changes: 0,
  answeredAt: undefined,
});

/**
 * Takes one look into account.
 * @param now seconds of the monotonic clock, not before any earlier look
 */
export function observeLease(
  before: LeaseObservation,
  reading: LeaseReading,
  now: number,
  options: ObserverOptions,
): LeaseObservation {
  if (reading.kind === 'failed') return before;
  const answered = { ...before, since: before.since ?? now, answeredAt: now };
  // A lease that is gone for a moment and comes back unrenewed has not been renewed.
  if (reading.kind === 'missing' || reading.renewTime === undefined) return answered;
  if (reading.renewTime === before.renewTime) return answered;
  if (before.since === undefined) return { ...answered, renewTime: reading.renewTime };
  const inRow = before.changedAt !== undefined && now - before.changedAt < options.duration;
  return {
    ...answered,
    renewTime: reading.renewTime,
    changedAt: now,
    changes: inRow ? before.changes + 1 : 1,
  };
}

/**
 * Judges an observation at a moment.
 * @param now seconds of the monotonic clock, not before any look
 */
export function judgeLease(
  seen: LeaseObservation,
  now: number,
  { duration, proof = 1 }: ObserverOptions,
): LeaseVerdict {
  const { since, changedAt, changes, answeredAt } = seen;
  const start = changedAt ?? since;
  if (start === undefined) return { state: 'unproven', age: undefined, until: undefined };
  const age = changedAt === undefined ? undefined : now - changedAt;
  const deadline = start + duration;
  const proven = changes >= proof;
  if (now < deadline) return { state: proven ? 'alive' : 'unproven', age, until: deadline };
  const confirmed = answeredAt !== undefined && answeredAt >= deadline;
  return { state: confirmed ? 'dead' : proven ? 'unknown' : 'unproven', age, until: undefined };
}

/** Whether pods may go where the lease says so; a policy decides about unknown. */
export function isReady(state: LeaseState, whenUnknown: 'ready' | 'not-ready'): boolean {
  return state === 'alive' || (state === 'unknown' && whenUnknown === 'ready');
}
