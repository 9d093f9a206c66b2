/** Before a retry. Source: client-go, default_rate_limiters.go. */
const FIRST_RETRY_SECONDS = 0.005;
const MAX_RETRY_SECONDS = 1000;

type Work = () => Promise<unknown>;

/**
 * A workqueue: one task at a time for each key, and one more for requests during it; `refused` and failed ones are
 * retried. A key's failures end with its first success, everything at `stop`.
 */
export class Workqueue {
  readonly #onFault: (error: unknown) => void;
  readonly #running = new Map<string, Promise<void>>();
  readonly #requeued = new Map<string, Work>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #failures = new Map<string, number>();
  #isStopped = false;

  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
  }

  add(key: string, work: Work, afterSeconds = 0): void {
    if (this.#isStopped) return;
    if (afterSeconds > 0) {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.add(key, work);
      }, afterSeconds * 1000);
      this.#timers.add(timer);
    } else if (this.#running.has(key)) this.#requeued.set(key, work);
    else this.#running.set(key, this.#run(key, work));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(this.#running.values());
  }

  async #run(key: string, work: Work): Promise<void> {
    const outcome = await work().catch((error: unknown) => {
      this.#onFault(error);
      return 'refused' as const;
    });
    if (outcome === 'refused') {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      this.add(key, work, Math.min(FIRST_RETRY_SECONDS * 2 ** failures, MAX_RETRY_SECONDS));
    } else this.#failures.delete(key);
    this.#running.delete(key);
    const next = this.#requeued.get(key);
    this.#requeued.delete(key);
    if (next) this.add(key, next);
  }
}
