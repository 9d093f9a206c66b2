/** One thing the page shows, as it goes out. */
export interface LogRecord {
  /** Ascends with every change of any record. */
  readonly seq: number;
  readonly json: string;
}

interface Kept extends LogRecord {
  /** The record says that its thing is gone. */
  readonly isEnd: boolean;
}

/**
 * The newest record of each thing, in the order in which they changed. A viewer that has seen everything up to some number
 * gets what is newer: so a viewer that was slow or asleep catches up with one record for each thing that changed, and
 * nothing is queued for any viewer.
 *
 * Invariants: a thing has one record; iteration ascends by `seq`; records that tell of an end are bounded, and `covers`
 * says whether any was dropped since a number.
 */
export class RecordLog {
  readonly #records = new Map<string, Kept>();
  readonly #mostEnds: number;
  #ends = 0;
  #last = 0;
  #dropped = 0;

  /** @param mostEnds how many ends are remembered */
  constructor(mostEnds = 4096) {
    this.#mostEnds = mostEnds;
  }

  /** The number of the newest record; 0 while there is none. */
  get last(): number {
    return this.#last;
  }

  get size(): number {
    return this.#records.size - this.#ends;
  }

  /** Does nothing if the thing's record says so already. */
  put(key: string, json: string): void {
    const before = this.#records.get(key);
    if (before?.json === json) return;
    if (before?.isEnd) this.#ends--;
    this.#set(key, json, false);
  }

  /** The thing is gone; `json` says so to those who know of it. */
  end(key: string, json: string): void {
    const before = this.#records.get(key);
    if (before === undefined || before.isEnd) return;
    this.#set(key, json, true);
    this.#ends++;
    if (this.#ends > this.#mostEnds) this.#dropOldestEnd();
  }

  /** Whether `after(seq)` is complete for a viewer that has seen everything up to `seq`. */
  covers(seq: number): boolean {
    return seq <= this.#last && (seq === 0 || seq >= this.#dropped);
  }

  /** What is newer, oldest first. What changes meanwhile comes in as well. */
  *after(seq: number): Generator<LogRecord> {
    for (const record of this.#records.values()) if (record.seq > seq) yield record;
  }

  #set(key: string, json: string, isEnd: boolean): void {
    // Taken out first: a Map keeps a key that it knows where it is.
    this.#records.delete(key);
    this.#records.set(key, { seq: ++this.#last, json, isEnd });
  }

  #dropOldestEnd(): void {
    for (const [key, { seq, isEnd }] of this.#records) {
      if (!isEnd) continue;
      this.#records.delete(key);
      this.#ends--;
      this.#dropped = seq;
      return;
    }
  }
}
