/** Milliseconds of work that a sender may cause at once, and its long-term part of the time, from 0 to 1. */
const BURST_MILLISECONDS = 250;
const SHARE = 0.02;
const CHECK_MILLISECONDS = 100;

const now = () => performance.now();

/** Milliseconds of processor time that this process has used: a process that does not get a processor charges no sender. */
function spent(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

interface Account {
  /** Milliseconds of work, as of `at`. */
  debt: number;
  at: number;
}

/**
 * Limits each sender to its share of the only thread: after BURST of work it waits until its debt has run down at the
 * rate SHARE. Owner of an account and of a waiting report: the sender, of which only the newest report counts. End: the
 * debt has run down, or the report is taken.
 */
export class FairIntake<R> {
  readonly #take: (sender: string, report: R | undefined) => void;
  readonly #accounts = new Map<string, Account>();
  readonly #waiting = new Map<string, { readonly report: R | undefined }>();
  #isScheduled = false;

  /** @param take never throws */
  constructor(take: (sender: string, report: R | undefined) => void) {
    this.#take = take;
  }

  /** @param report undefined: the sender has no report any more */
  offer(sender: string, report: R | undefined): void {
    if (this.#debtOf(sender) < BURST_MILLISECONDS) {
      this.#waiting.delete(sender);
      this.#takeNow(sender, report);
      return;
    }
    this.#waiting.set(sender, { report });
    this.#schedule();
  }

  #debtOf(sender: string): number {
    const account = this.#accounts.get(sender);
    return account === undefined ? 0 : Math.max(0, account.debt - (now() - account.at) * SHARE);
  }

  #takeNow(sender: string, report: R | undefined): void {
    const debt = this.#debtOf(sender);
    const before = spent();
    this.#take(sender, report);
    const owed = debt + spent() - before;
    // Forgets senders with little debt, so that senders that have gone use no memory.
    if (owed < 1) this.#accounts.delete(sender);
    else this.#accounts.set(sender, { debt: owed, at: now() });
  }

  #schedule(): void {
    if (this.#waiting.size === 0 || this.#isScheduled) return;
    this.#isScheduled = true;
    setTimeout(() => this.#takeWaiting(), CHECK_MILLISECONDS).unref();
  }

  #takeWaiting(): void {
    this.#isScheduled = false;
    for (const [sender, { report }] of this.#waiting) {
      if (this.#debtOf(sender) >= BURST_MILLISECONDS) continue;
      this.#waiting.delete(sender);
      this.#takeNow(sender, report);
      // One at a time: other work gets a turn in between.
      break;
    }
    this.#schedule();
  }
}
