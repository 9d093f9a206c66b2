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
 * rate SHARE. Only its newest report counts. @param take never throws
 */
export function createFairIntake<R>(take: (sender: string, report: R | undefined) => void) {
  const accounts = new Map<string, Account>();
  const waiting = new Map<string, { readonly report: R | undefined }>();
  let isScheduled = false;

  const debtOf = (sender: string): number => {
    const account = accounts.get(sender);
    return account === undefined ? 0 : Math.max(0, account.debt - (now() - account.at) * SHARE);
  };

  const takeNow = (sender: string, report: R | undefined): void => {
    const debt = debtOf(sender);
    const before = spent();
    take(sender, report);
    const owed = debt + spent() - before;
    // Forgets senders with little debt, so that senders that have gone use no memory.
    if (owed < 1) accounts.delete(sender);
    else accounts.set(sender, { debt: owed, at: now() });
  };

  const takeWaiting = (): void => {
    isScheduled = false;
    for (const [sender, { report }] of waiting) {
      if (debtOf(sender) >= BURST_MILLISECONDS) continue;
      waiting.delete(sender);
      takeNow(sender, report);
      // One at a time: other work gets a turn in between.
      break;
    }
    schedule();
  };

  function schedule(): void {
    if (waiting.size === 0 || isScheduled) return;
    isScheduled = true;
    setTimeout(takeWaiting, CHECK_MILLISECONDS).unref();
  }

  return {
    /** @param report undefined: the sender has no report any more */
    offer(sender: string, report: R | undefined) {
      if (debtOf(sender) < BURST_MILLISECONDS) {
        waiting.delete(sender);
        takeNow(sender, report);
        return;
      }
      waiting.set(sender, { report });
      schedule();
    },
  };
}
