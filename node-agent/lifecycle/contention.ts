/** Seconds within which a second displacement means that another process keeps setting the CPUs. */
const CONTENTION_SECONDS = 60;
/** Seconds without a displacement after which the agent sets them again. */
const QUIET_SECONDS = 600;

/**
 * Whether another process also sets CPUs that the agent sets. `suspected`, for a minute after one displacement (an
 * operator ran taskset); `contended`, after a second one within that minute.
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

  /** Call it after each pass with the number of things that another process had moved since the last pass. */
  note(displaced: number): void {
    if (displaced === 0) return;
    this.#isRepeated = this.mode !== 'clear';
    this.#lastDisplacedAt = this.#nowSeconds();
  }

  get mode(): 'clear' | 'suspected' | 'contended' {
    const seconds = this.#nowSeconds() - this.#lastDisplacedAt;
    if (this.#isRepeated && seconds < QUIET_SECONDS) return 'contended';
    return !this.#isRepeated && seconds < CONTENTION_SECONDS ? 'suspected' : 'clear';
  }
}
