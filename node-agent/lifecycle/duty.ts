import type { Logger } from '../../runtime/log.ts';
import { underSignals } from '../../runtime/signals.ts';
import { Backoff, sleep } from '../../runtime/time.ts';

/** One thing the agent does. Duties run concurrently and know nothing of each other's failures. */
export interface Duty {
  readonly name: string;
  /** Does the work until the signal aborts, then undoes what must be undone and resolves. Can be run again. */
  run(signal: AbortSignal): Promise<void>;
}

export interface DutyObserver {
  onState(duty: string, running: boolean): void;
  onFailure(duty: string): void;
}

/** A run this long, in seconds, counts as working: the next failure is the first again. */
const STEADY = 60;

/**
 * Runs a duty until the signal aborts. One that fails is said so, waits (0.5 s, doubling to 30 s) and is run again; one
 * that ends by itself has nothing to do here and is left alone.
 */
export async function keepRunning(duty: Duty, log: Logger, observer: DutyObserver, signal: AbortSignal): Promise<void> {
  const backoff = new Backoff();
  while (!signal.aborted) {
    const started = performance.now();
    try {
      observer.onState(duty.name, true);
      // A signal of its own ends what a failed run left behind (watches, timers) before the next one.
      await underSignals([signal], undefined, (run) => duty.run(run));
      return;
    } catch (err) {
      if (performance.now() - started > STEADY * 1000) backoff.reset();
      observer.onFailure(duty.name);
      log.error({ err, duty: duty.name }, 'duty failed; restarting it');
    } finally {
      observer.onState(duty.name, false);
    }
    await sleep(backoff.next(), signal).catch(() => undefined);
  }
}

/** Lets what a duty does in callbacks (events, timers) fail the duty, where it would end the process. */
export interface Guard {
  /** The callback, whose exceptions become the guard's failure. */
  <Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void;
  /** Fails the duty. */
  readonly fail: (error: unknown) => void;
  /** Never resolves; rejects with the first failure. */
  readonly failed: Promise<never>;
}

export function createGuard(): Guard {
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  // A caller that does not wait for it must not get an unhandled rejection.
  failed.catch(() => undefined);
  const guard =
    <Args extends unknown[]>(callback: (...args: Args) => void) =>
    (...args: Args): void => {
      try {
        callback(...args);
      } catch (error) {
        fail(error);
      }
    };
  return Object.assign(guard, { failed, fail: (error: unknown) => fail(error) });
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
