import { cut } from '../../model/brief.ts';
import type { Logger } from '../../runtime/log.ts';

/** Characters of a problem: an API server, a switch or a kubelet may have written it. */
const LONGEST = 500;

/** Logs a problem that a loop meets in every round once: when it begins and when it changes. */
export interface ProblemLog {
  /** Something went wrong; `text` says what is not done and what happens next. */
  met(err: unknown, text: string): void;
  /** The round went well. */
  gone(): void;
}

export function createProblemLog(log: Logger): ProblemLog {
  let last: string | undefined;
  return {
    met(err, text) {
      const problem = cut(err instanceof Error ? err.message : String(err), LONGEST);
      if (problem === last) return;
      last = problem;
      log.warn({ problem }, text);
    },
    gone() {
      if (last !== undefined) log.info({ was: last }, 'recovered');
      last = undefined;
    },
  };
}
