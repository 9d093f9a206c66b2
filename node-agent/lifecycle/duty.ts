import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, sleep, underSignals } from '../../runtime/time.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';

export interface Services {
  readonly nodeName: string;
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly metrics: AgentMetrics;
  readonly log: AgentLogger;
}

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

/** Restarts a failed duty after a pause (0.5 s, doubling to 30 s). One that ends on its own does not run again. */
export async function keepRunning(duty: Duty, log: AgentLogger, observer: DutyObserver, signal: AbortSignal) {
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

interface Rounds {
  /** What it logs about failed rounds, and the message. */
  readonly problems: Pick<ProblemLog<AgentMessages>, 'failed' | 'recovered'>;
  readonly warning: Parameters<ProblemLog<AgentMessages>['failed']>[1];
  /** The pauses after failed rounds, in seconds. */
  readonly pauses?: Pick<Backoff, 'next' | 'reset'>;
  /** A change begins the next round at once, except after a failure. */
  readonly changes?: ChangeSignal;
}

/**
 * Does a round again and again until the signal aborts; one that fails is logged, and repeated after a pause.
 * @param round returns the seconds until the next one; undefined: until a change
 */
export async function repeat(
  signal: AbortSignal,
  round: (signal: AbortSignal) => Promise<number | undefined>,
  { problems, warning, pauses = new Backoff(), changes = new ChangeSignal() }: Rounds,
): Promise<void> {
  while (!signal.aborted) {
    // Before the round, so that no change is missed.
    changes.clear();
    try {
      const seconds = await round(signal);
      pauses.reset();
      problems.recovered();
      await changes.wait(signal, seconds);
    } catch (error) {
      if (signal.aborted) return;
      problems.failed(error, warning);
      await sleep(pauses.next(), signal).catch(() => undefined);
    }
  }
}

/** Lets an error in a duty's callbacks (events, timers) fail the duty instead of ending the process. */
export class Guard {
  readonly #failure = new AbortController();

  /** Wraps a callback: its exceptions become the guard's failure. */
  wrap<Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    return (...args) => {
      try {
        callback(...args);
      } catch (error) {
        this.fail(error);
      }
    };
  }

  readonly fail = (error: unknown): void => this.#failure.abort(error);

  /** Resolves when the signal aborts. @throws the first failure */
  async until(signal: AbortSignal): Promise<void> {
    await Promise.race([untilAborted(signal), untilAborted(this.#failure.signal)]);
    if (!signal.aborted) this.#failure.signal.throwIfAborted();
  }
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

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

/** A notification that stays set until `clear`. */
export class ChangeSignal {
  #isSet = false;
  #wake = () => {};

  readonly set = (): void => {
    this.#isSet = true;
    this.#wake();
  };

  clear(): void {
    this.#isSet = false;
  }

  /** Resolves when it is set (true), after `seconds` (false), or when the signal aborts. */
  async wait(signal: AbortSignal, seconds?: number): Promise<boolean> {
    if (this.#isSet) return true;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await underSignals([signal], undefined, (waiting) => {
      const end = seconds === undefined ? untilAborted(waiting) : sleep(seconds, waiting).catch(() => undefined);
      return Promise.race([woken, end]);
    });
    return this.#isSet;
  }
}

/** Current problems as texts, by what has them. Owner: who sets a text. Age: as last set. End: `set` without a text. */
export class Problems extends Listeners {
  readonly #texts = new Map<string, string>();

  get current(): readonly string[] {
    return [...this.#texts.values()].sort();
  }

  readonly set = (subject: string, text: string | undefined): void => {
    if (this.#texts.get(subject) === text) return;
    if (text === undefined) this.#texts.delete(subject);
    else this.#texts.set(subject, text);
    this.notify();
  };
}

/** Limits how often requested work runs: a busy source of requests must not keep the agent busy. */
export class Throttle {
  readonly #work: () => void;
  readonly #debounceSeconds: number;
  readonly #restFactor: number;
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds. */
  #notBefore = 0;

  /** @param debounceSeconds minimum from a request to the work @param restFactor pause by duration of a run */
  constructor(work: () => void, debounceSeconds: number, restFactor: number) {
    this.#work = work;
    this.#debounceSeconds = debounceSeconds;
    this.#restFactor = restFactor;
  }

  readonly now = (): void => {
    const begun = performance.now();
    this.#work();
    const ended = performance.now();
    this.#notBefore = ended + this.#restFactor * (ended - begun);
  };

  /** Runs the work soon; several requests until then cause one run. */
  readonly soon = (): void => {
    const wait = Math.max(this.#debounceSeconds * 1000, this.#notBefore - performance.now());
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.now();
    }, wait);
  };

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
