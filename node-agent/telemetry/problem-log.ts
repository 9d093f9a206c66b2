import { cut, errorText } from '../../model/errors.ts';
import type { AgentLogger, AgentWarning } from './log-messages.ts';

/** Maximum characters of a problem, which may come from an API server, a switch or a kubelet. */
const MAX_CHARACTERS = 500;

/** Logs a problem that recurs in every round of a loop only once: when it begins or changes. */
export class ProblemLog {
  readonly #log: AgentLogger;
  #last: string | undefined;

  constructor(log: AgentLogger) {
    this.#log = log;
  }

  /** Reports a failure; `text` describes what is not done and what happens next. */
  failed(err: unknown, text: AgentWarning): void {
    const problem = cut(errorText(err), MAX_CHARACTERS);
    if (problem === this.#last) return;
    this.#last = problem;
    this.#log.warn({ reason: problem }, text);
  }

  /** Reports a round without a problem. */
  recovered(): void {
    if (this.#last !== undefined) this.#log.info({ was: this.#last }, 'recovered');
    this.#last = undefined;
  }
}
