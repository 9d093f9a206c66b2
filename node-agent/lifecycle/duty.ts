import { Backoff, sleep, underSignals } from '../../runtime/time.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** One task of the agent. Duties run concurrently and do not affect each other when they fail. */
export interface Duty {
  readonly name: string;
  /** Does the work until the signal aborts, then undoes what must be undone and resolves. Can run again. */
  run(signal: AbortSignal): Promise<void>;
}

export interface DutyObserver {
  onState(duty: string, running: boolean): void;
  onFailure(duty: string): void;
}

/** Seconds after which a run counts as working: the next failure then counts as the first. */
const STEADY_SECONDS = 60;

/**
 * Runs a duty until the signal aborts. After a failure it logs the error, waits (0.5 s, doubling to 30 s) and runs the
 * duty again. A duty that ends on its own has nothing to do on this node and does not run again.
 */
export async function keepRunning(
  duty: Duty,
  log: AgentLogger,
  observer: DutyObserver,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff();
  while (!signal.aborted) {
    const started = performance.now();
    try {
      observer.onState(duty.name, true);
      // Each run has its own signal, which ends what a failed run left behind (watches, timers) before the next one.
      await underSignals([signal], undefined, (run) => duty.run(run));
      return;
    } catch (err) {
      if (performance.now() - started > STEADY_SECONDS * 1000) backoff.reset();
      observer.onFailure(duty.name);
      log.error({ err, duty: duty.name }, 'duty failed; restarting it');
    } finally {
      observer.onState(duty.name, false);
    }
    await sleep(backoff.next(), signal).catch(() => undefined);
  }
}

/** Lets an error in a duty's callbacks (events, timers) fail the duty instead of ending the process. */
export function createGuard() {
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  // Prevents an unhandled rejection where no caller waits.
  failed.catch(() => undefined);
  /** Wraps a callback: its exceptions become the guard's failure. */
  const guard =
    <Args extends unknown[]>(callback: (...args: Args) => void) =>
    (...args: Args): void => {
      try {
        callback(...args);
      } catch (error) {
        fail(error);
      }
    };
  /** `failed` never resolves; it rejects with the first failure. */
  return Object.assign(guard, { failed, fail: (error: unknown) => fail(error) });
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The subscribers to something that changes. */
export class Listeners<Args extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...args: Args) => void>();

  /** Calls the listener, synchronously, after each change. @returns a function that ends the subscription */
  readonly subscribe = (listener: (...args: Args) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  notify(...args: Args): void {
    for (const listener of this.#listeners) listener(...args);
  }
}

/** The failed duties that wait for a restart. */
export type Failures = ReturnType<typeof createFailures>;

export function createFailures() {
  const current = new Set<string>();
  const listeners = new Listeners();
  return {
    current: current as ReadonlySet<string>,
    set(duty: string, failed: boolean) {
      if (current.has(duty) === failed) return;
      if (failed) current.add(duty);
      else current.delete(duty);
      listeners.notify();
    },
    subscribe: listeners.subscribe,
  };
}

export interface ThrottleOptions {
  readonly work: () => void;
  /** Minimum seconds from a request to the work. */
  readonly debounceSeconds: number;
  /** The pause after a run, as a multiple of the run's duration. */
  readonly restFactor: number;
}

/** Limits how often requested work runs: a busy source of requests must not keep the agent busy. */
export function createThrottle({ work, debounceSeconds, restFactor }: ThrottleOptions) {
  let timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds. */
  let notBefore = 0;

  const now = () => {
    const begun = performance.now();
    work();
    const ended = performance.now();
    notBefore = ended + restFactor * (ended - begun);
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
        Math.max(debounceSeconds * 1000, notBefore - performance.now()),
      );
    },
    cancel() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
