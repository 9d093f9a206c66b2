/** Seconds within which a second displacement means that another process keeps setting the threads' CPUs. */
const REPEAT_SECONDS = 60;
/** Seconds without a displacement after which the exact set is enforced again. */
const QUIET_SECONDS = 600;

/**
 * Whether another process also sets the threads' CPUs. `suspected`, for a minute after one displacement (an operator ran
 * taskset); `contended`, after a second one within that minute.
 *
 * Owner: the passes. Age: of the last displacement. End: `contended` after the quiet time without a displacement.
 */
export class Contention {
  readonly #nowSeconds: () => number;
  #lastDisplacedAt = Number.NEGATIVE_INFINITY;
  #isRepeated = false;

  /** @param nowSeconds monotonic */
  constructor(nowSeconds: () => number) {
    this.#nowSeconds = nowSeconds;
  }

  /** Call it after each pass with the number of threads that another process had moved since the last pass. */
  note(displaced: number): void {
    if (displaced === 0) return;
    this.#isRepeated = this.mode !== 'clear';
    this.#lastDisplacedAt = this.#nowSeconds();
  }

  /** While `contended`, threads are only moved off owned CPUs; other settings of the other process stay. */
  get mode(): 'clear' | 'suspected' | 'contended' {
    const seconds = this.#nowSeconds() - this.#lastDisplacedAt;
    if (this.#isRepeated && seconds < QUIET_SECONDS) return 'contended';
    return !this.#isRepeated && seconds < REPEAT_SECONDS ? 'suspected' : 'clear';
  }
}
