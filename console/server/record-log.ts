/** The record of one thing that the page shows. */
export interface LogRecord {
  /** Increases with every change of any record. */
  readonly seq: number;
  readonly json: string;
}

interface Kept extends LogRecord {
  /** Whether the record marks the removal of its thing. */
  readonly isEnd: boolean;
}

/**
 * The newest record of each thing, in the order of the last changes. A viewer that has received everything up to some
 * number gets the newer records. A viewer that was slow or suspended therefore catches up with one record for each
 * changed thing, and no viewer has a queue.
 *
 * Invariants: a thing has one record; iteration ascends by `seq`; the number of removal records is limited, and
 * `covers` returns whether any was dropped since a number.
 */
export class RecordLog {
  readonly #records = new Map<string, Kept>();
  readonly #mostEnds: number;
  #ends = 0;
  #last = 0;
  #dropped = 0;

  /** @param mostEnds number of removal records that are kept */
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

  /** Sets the record of a thing; does nothing if it is unchanged. */
  put(key: string, json: string): void {
    const before = this.#records.get(key);
    if (before?.json === json) return;
    if (before?.isEnd) this.#ends--;
    this.#set(key, json, false);
  }

  /** Marks the removal of a thing; viewers that know it get `json`. */
  end(key: string, json: string): void {
    const before = this.#records.get(key);
    if (before === undefined || before.isEnd) return;
    this.#set(key, json, true);
    this.#ends++;
    if (this.#ends > this.#mostEnds) this.#dropOldestEnd();
  }

  /** Whether `after(seq)` is complete for a viewer that has received everything up to `seq`. */
  covers(seq: number): boolean {
    return seq <= this.#last && (seq === 0 || seq >= this.#dropped);
  }

  /** Newer records, oldest first. Includes changes during the iteration. */
  *after(seq: number): Generator<LogRecord> {
    for (const record of this.#records.values()) if (record.seq > seq) yield record;
  }

  #set(key: string, json: string, isEnd: boolean): void {
    // Deleted first, because a Map keeps the position of an existing key.
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
