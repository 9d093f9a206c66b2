import type { Threads } from './proc.ts';

/** Seconds after which a thread's name is final: it inherits its parent's name and sets its own at once. */
const NAME_FINAL_SECONDS = 1;

/** Of a thread; `first`: when it was found, in monotonic seconds. */
interface ThreadName {
  readonly name: string;
  readonly first: number;
  readonly isFinal: boolean;
}

/** The names of one process's threads. Owner: its listing. Age: a name is read until it is final. End: with the thread. */
export class ThreadNames {
  readonly #pid: number;
  readonly #threads: Pick<Threads, 'name'>;
  readonly #nowSeconds: () => number;
  #names: ReadonlyMap<number, ThreadName> = new Map();

  /** @param nowSeconds monotonic */
  constructor(pid: number, threads: Pick<Threads, 'name'>, nowSeconds: () => number) {
    this.#pid = pid;
    this.#threads = threads;
    this.#nowSeconds = nowSeconds;
  }

  /** By the ids of the process's present threads, without those that have just ended. @throws UnreadableError */
  read(tids: readonly number[]): ReadonlyMap<number, Pick<ThreadName, 'name'>> {
    const at = this.#nowSeconds();
    const names = tids.flatMap((tid): [number, ThreadName][] => {
      const before = this.#names.get(tid);
      if (before?.isFinal === true) return [[tid, before]];
      const name = this.#threads.name(this.#pid, tid);
      if (name === undefined) return [];
      const first = before?.first ?? at;
      return [[tid, { name, first, isFinal: at - first >= NAME_FINAL_SECONDS }]];
    });
    this.#names = new Map(names);
    return this.#names;
  }
}
