/**
 * Takes up what many senders report, and keeps each to its share: a sender whose reports have cost more than BURST of work
 * has to wait until its debt has run down, at SHARE of the time. Of the reports that come meanwhile only the newest counts.
 * So no sender, whatever it sends and however often, takes the process's one thread from the others.
 */
export interface FairIntake<R> {
  /** @param report undefined: there is none any more */
  offer(sender: string, report: R | undefined): void;
  /** Senders whose newest report waits. */
  readonly waiting: number;
  stop(): void;
}

/** Milliseconds of work that a sender may cause at once, and the part of the time that it may take for good. */
const BURST = 250;
const SHARE = 0.02;
/** Milliseconds between two looks at the senders that wait. */
const LOOK = 100;

interface Account {
  /** Milliseconds of work, as of `at`. */
  debt: number;
  at: number;
}

/**
 * @param take takes up one report; never throws
 * @param now milliseconds of a monotonic clock
 */
export function createFairIntake<R>(
  take: (sender: string, report: R | undefined) => void,
  now: () => number = () => performance.now(),
): FairIntake<R> {
  const accounts = new Map<string, Account>();
  const waiting = new Map<string, { readonly report: R | undefined }>();
  let timer: NodeJS.Timeout | undefined;

  const debtOf = (sender: string): number => {
    const account = accounts.get(sender);
    return account === undefined ? 0 : Math.max(0, account.debt - (now() - account.at) * SHARE);
  };

  const takeNow = (sender: string, report: R | undefined): void => {
    const debt = debtOf(sender);
    const begun = now();
    take(sender, report);
    const at = now();
    const owed = debt + at - begun;
    // Whoever owes little is forgotten, so that nothing is kept of senders that are gone.
    if (owed < 1) accounts.delete(sender);
    else accounts.set(sender, { debt: owed, at });
  };

  const look = (): void => {
    timer = undefined;
    for (const [sender, { report }] of waiting) {
      if (debtOf(sender) >= BURST) continue;
      waiting.delete(sender);
      takeNow(sender, report);
      // One at a time: others get a turn in between.
      break;
    }
    schedule();
  };

  function schedule(): void {
    if (waiting.size > 0) timer ??= setTimeout(look, LOOK).unref();
  }

  return {
    offer(sender, report) {
      if (debtOf(sender) < BURST) {
        waiting.delete(sender);
        takeNow(sender, report);
        return;
      }
      waiting.set(sender, { report });
      schedule();
    },
    get waiting() {
      return waiting.size;
    },
    stop() {
      clearTimeout(timer);
      waiting.clear();
    },
  };
}
