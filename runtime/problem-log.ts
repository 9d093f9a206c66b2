import { cut, errorText } from '../model/errors.ts';
import type { LogMessages, MessageAt, MessageLogger } from './log.ts';
import { monotonicSeconds } from './time.ts';

const MAX_CHARACTERS = 500;

interface RecoveryLogger {
  info(fields: object, message: 'recovered'): void;
}

/** Logs a problem that recurs in every round of a loop only when it begins, changes and ends. */
export class ProblemLog<M extends LogMessages> {
  readonly #log: MessageLogger<M> & RecoveryLogger;
  readonly #fields: object;
  readonly #durations = new Durations();
  #last: { readonly warning: MessageAt<M, 'warn'>; readonly reason: string } | undefined;

  constructor(log: MessageLogger<M> & RecoveryLogger, fields: object = {}) {
    this.#log = log;
    this.#fields = fields;
  }

  /** @param warning what is not done and what happens next @param fields where they say more than the reason */
  failed(err: unknown, warning: MessageAt<M, 'warn'>, fields: object = {}): void {
    const reason = cut(errorText(err), MAX_CHARACTERS);
    this.#durations.begin('');
    if (reason === this.#last?.reason) return;
    this.#last = { warning, reason };
    this.#log.warn({ ...this.#fields, ...fields, reason }, warning);
  }

  recovered(): void {
    if (this.#last === undefined) return;
    const { warning, reason: was } = this.#last;
    this.#last = undefined;
    this.#log.info({ ...this.#fields, warning, was, ...this.#durations.end('') }, 'recovered');
  }
}

/** When states began, by key, for the line about their end. */
export class Durations {
  readonly #since = new Map<string, number>();

  /** Does nothing for a state that has begun already. */
  begin(key: string): void {
    if (!this.#since.has(key)) this.#since.set(key, monotonicSeconds());
  }

  /** The field for the line about the end; none if this process has not seen the beginning. */
  end(key: string): { readonly lastedSeconds?: number } {
    const since = this.#since.get(key);
    this.#since.delete(key);
    return since === undefined ? {} : { lastedSeconds: Math.round(monotonicSeconds() - since) };
  }
}
