/** More than a slow answer explains, and less than the duration of a Lease. */
const MIN_SECONDS = 10;

/**
 * Compares this node's clock with the API server's. Owner: the report. Age: of the last answer. End: the clocks agree.
 * A reported difference stays as it is while it changes by less than `MIN_SECONDS`, because each change is written.
 */
export class ClockCheck {
  #reportedSeconds = 0;

  /** @param offset milliseconds that the API server's clock is ahead, 0 if unknown */
  problems(offset: number): readonly string[] {
    const seconds = Math.round(offset / 1000);
    if (Math.abs(seconds) < MIN_SECONDS) this.#reportedSeconds = 0;
    else if (Math.abs(seconds - this.#reportedSeconds) >= MIN_SECONDS) this.#reportedSeconds = seconds;
    const reported = this.#reportedSeconds;
    if (reported === 0) return [];
    const difference = `${Math.abs(reported)} s ${reported > 0 ? 'behind' : 'ahead of'}`;
    return [`the node’s clock is ${difference} the API server’s`];
  }
}
