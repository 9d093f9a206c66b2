import { formatTime } from './timing.ts';
/**
 * Detects from a lease whether its holder is alive, without comparing clocks: whether renewTime *changes*, and when
 * this process observed that. The value in the first reading proves nothing: it may be a week old.
 * Invariants: a failed read changes nothing, the state is alive until the last change + duration, then unknown. dead
 * requires a response after that moment without a change. Only a change leads to alive.
 */

export type LeaseReading =
  /** undefined: the lease exists and was never renewed. */
  | { readonly kind: 'read'; readonly renewTime: string | undefined }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed' };

/** Times are seconds of one monotonic clock. */
export interface LeaseObservation {
  /** When the API server first responded; undefined if it has not. */
  readonly since: number | undefined;
  readonly renewTime: string | undefined;
  /** When renewTime was last observed to change. */
  readonly changedAt: number | undefined;
  /** Number of consecutive changes, each within a duration of the previous one. */
  readonly changes: number;
  /** When the API server last responded. */
  readonly answeredAt: number | undefined;
}

export interface ObserverOptions {
  /** Seconds that one renewal counts. */
  readonly duration: number;
  /** Consecutive changes before a lease counts as alive; 2 if another host side writes it at its start. */
  readonly proof?: number;
}

export type LeaseState =
  | 'alive'
  /** Too few changes so far, and not observed for long enough to be dead. */
  | 'unproven'
  /** A response has shown no change for a whole duration. */
  | 'dead'
  /** No change was observed for a whole duration, and no response proves that there was none. */
  | 'unknown';

export interface LeaseVerdict {
  readonly state: LeaseState;
  /** Seconds since the last observed change; undefined if there was none. */
  readonly age: number | undefined;
  /** Monotonic second at which the state changes without another reading; undefined if it does not. */
  readonly until: number | undefined;
}

export const NOTHING_OBSERVED: LeaseObservation = Object.freeze({
  since: undefined,
  renewTime: undefined,
  changedAt: undefined,
  changes: 0,
  answeredAt: undefined,
});

/** @param now seconds of the monotonic clock, not before any earlier reading */
export function observeLease(
  before: LeaseObservation,
  reading: LeaseReading,
  now: number,
  options: ObserverOptions,
): LeaseObservation {
  if (reading.kind === 'failed') return before;
  const answered = { ...before, since: before.since ?? now, answeredAt: now };
  // A lease that disappears for a moment and returns without a renewal has not been renewed.
  if (reading.kind === 'missing' || reading.renewTime === undefined) return answered;
  if (reading.renewTime === before.renewTime) return answered;
  if (before.since === undefined) return { ...answered, renewTime: reading.renewTime };
  const inRow = before.changedAt !== undefined && now - before.changedAt < options.duration;
  return { ...answered, renewTime: reading.renewTime, changedAt: now, changes: inRow ? before.changes + 1 : 1 };
}

/** @param now seconds of the monotonic clock, not before any reading */
export function judgeLease(
  observation: LeaseObservation,
  now: number,
  { duration, proof = 1 }: ObserverOptions,
): LeaseVerdict {
  const { since, changedAt, changes, answeredAt } = observation;
  const start = changedAt ?? since;
  if (start === undefined) return { state: 'unproven', age: undefined, until: undefined };
  const age = changedAt === undefined ? undefined : now - changedAt;
  const deadline = start + duration;
  const proven = changes >= proof;
  if (now < deadline) return { state: proven ? 'alive' : 'unproven', age, until: deadline };
  const confirmed = answeredAt !== undefined && answeredAt >= deadline;
  return { state: confirmed ? 'dead' : proven ? 'unknown' : 'unproven', age, until: undefined };
}

/** Whether pods may use a DPU in this state; a policy decides about unknown. */
export function isReady(state: LeaseState, whenUnknown: 'ready' | 'not-ready'): boolean {
  return state === 'alive' || (state === 'unknown' && whenUnknown === 'ready');
}

/**
 * If OVN-Kubernetes writes a DPU's lease, its host side renews it once at each start, and the kubelet restarts one that
 * crashes: at once, then after 10, 20, 40 … 300 s (CrashLoopBackOff).
 */

const FIRST_BACKOFF_SECONDS = 10;
const MAX_BACKOFF_SECONDS = 300;

/** Consecutive renewals, of which one must come from the DPU; above a duration of 300 s no number is enough. */
export function renewalsBeyondRestarts(duration: number): number {
  // The start, the restart at once, and the restarts whose back-off is shorter than the duration.
  let restarts = 2;
  for (let wait = FIRST_BACKOFF_SECONDS; wait < Math.min(duration, MAX_BACKOFF_SECONDS); wait *= 2) restarts++;
  return restarts + 1;
}

/** When the last renewal was observed: an age in an object's text would stay what it was. @param age in seconds */
export function renewalTime(age: number, nowMilliseconds: number): string {
  return formatTime(nowMilliseconds - age * 1000);
}

/** For an Event or a pod's message. */
export function describeLease(
  { state, age }: LeaseVerdict,
  about: { readonly lease: string; readonly duration: number; readonly nowMilliseconds: number },
): string {
  const { lease, duration, nowMilliseconds } = about;
  const time = age === undefined ? undefined : renewalTime(age, nowMilliseconds);
  const renewed = time === undefined ? 'has no observed renewal' : `was last renewed ${time}`;
  const texts: Readonly<Record<LeaseState, string>> = {
    alive: `its lease ${lease} was renewed ${time ?? 'now'}`,
    unproven: `its lease ${lease} has no observed renewal yet; check the agent on the DPU`,
    dead: `its lease ${lease} ${renewed}; the limit is ${duration} s; check the DPU and the agent on it`,
    unknown: `the API server does not answer, and lease ${lease} ${renewed}`,
  };
  return texts[state];
}
