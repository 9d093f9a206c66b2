import { FairQueue } from './fair-queue.ts';

/** `retry`: again after a back-off. `nothing`: there was nothing to do, so the next one need not wait. */
export type WorkResult = 'done' | 'nothing' | 'retry';

interface WorkQueueOptions<V> {
  /** An error is as `retry`. @param failures consecutive ones of the key until now */
  readonly work: (value: V, failures: number) => Promise<WorkResult>;
  readonly onFault: (error: unknown) => void;
  /** Keys at a time. Default: any number. */
  readonly maxConcurrent?: number;
  /** After the work for a key, before the next one takes its place. Default 0. */
  readonly pauseMilliseconds?: number;
  /** Until the first retry; each later one waits twice as long, up to the maximum. Default: a second, a minute. */
  readonly firstRetryMilliseconds?: number;
  readonly maxRetryMilliseconds?: number;
}

/** Keys with failures. Beyond that, the one that failed longest ago is forgotten. */
const MAX_FAILED_KEYS = 5000;

/**
 * Work by key (`namespace/name`), as in client-go: never twice at once for a key, once more if it was added during the
 * last run, and again after a failure. It begins when the changes of the current turn of the event loop are made.
 * Namespaces take turns. A key's failures end with its first run without one, all keys at `stop`.
 */
export class WorkQueue<V> {
  readonly #options: WorkQueueOptions<V>;
  readonly #queue = new FairQueue<{ readonly key: string; readonly value: V }>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #failures = new Map<string, number>();
  /** Keys whose work runs, and pauses after it. */
  #busyPlaces = 0;
  #isStopped = false;

  constructor(options: WorkQueueOptions<V>) {
    this.#options = options;
  }

  /** @param value replaces that of the key's last addition, if its work has not begun */
  add(key: string, value: V): void {
    if (this.#isStopped) return;
    this.#queue.set(key.split('/', 1)[0] ?? '', key, { key, value });
    queueMicrotask(() => this.#next());
  }

  /** Replaces an earlier wait for the key. */
  addAfter(key: string, value: V, milliseconds: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timers.get(key));
    const timer = setTimeout(() => {
      this.#timers.delete(key);
      this.add(key, value);
    }, milliseconds);
    this.#timers.set(key, timer.unref());
  }

  /** Whether its work runs, or waits for its time. */
  isBusy(key: string): boolean {
    return this.#running.has(key) || this.#timers.has(key);
  }

  /** Resolves when the work that runs has ended: it is not interrupted. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.all(this.#running.values());
  }

  #next(): void {
    const { maxConcurrent = Number.POSITIVE_INFINITY } = this.#options;
    while (!this.#isStopped && this.#busyPlaces < maxConcurrent) {
      const next = this.#queue.take(({ key }) => !this.#running.has(key));
      if (next === undefined) return;
      this.#busyPlaces++;
      this.#running.set(next.key, this.#run(next.key, next.value));
    }
  }

  async #run(key: string, value: V): Promise<void> {
    const { work, onFault, pauseMilliseconds = 0 } = this.#options;
    const result = await work(value, this.#failures.get(key) ?? 0).catch((error: unknown): WorkResult => {
      onFault(error);
      return 'retry';
    });
    this.#running.delete(key);
    if (result === 'retry') this.#retryLater(key, value);
    else this.#failures.delete(key);
    if (pauseMilliseconds === 0 || result === 'nothing') this.#freePlace();
    else setTimeout(() => this.#freePlace(), pauseMilliseconds).unref();
  }

  #freePlace(): void {
    this.#busyPlaces--;
    this.#next();
  }

  #retryLater(key: string, value: V): void {
    const { firstRetryMilliseconds = 1000, maxRetryMilliseconds = 60_000 } = this.#options;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.delete(key);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size >= MAX_FAILED_KEYS && oldest !== undefined) this.#forget(oldest);
    this.#failures.set(key, failures);
    this.addAfter(key, value, Math.min(maxRetryMilliseconds, firstRetryMilliseconds * 2 ** (failures - 1)));
  }

  #forget(key: string): void {
    this.#failures.delete(key);
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }
}
