import { cut, errorText } from '../../model/errors.ts';
import type { AgentLogger, AgentWarning } from './log-messages.ts';

/** Maximum characters of a problem, which may come from an API server, a switch or a kubelet. */
const MAX_CHARACTERS = 500;

/** Logs a problem that recurs in every round of a loop only once: when it begins or changes. */
export function createProblemLog(log: AgentLogger) {
  let last: string | undefined;
  return {
    /** Reports a failure; `text` describes what is not done and what happens next. */
    failed(err: unknown, text: AgentWarning) {
      const problem = cut(errorText(err), MAX_CHARACTERS);
      if (problem === last) return;
      last = problem;
      log.warn({ problem }, text);
    },
    /** Reports a round without a problem. */
    recovered() {
      if (last !== undefined) log.info({ was: last }, 'recovered');
      last = undefined;
    },
  };
}
