import { PlumblineError } from '../../model/errors.ts';

/** A command sets `process.exitCode = EXIT.findings`, or throws: main.ts prints one line (errors.ts). */
export const EXIT = {
  ok: 0,
  /** The command did its work and found a fault, or failed during its work. */
  findings: 1,
  /** Invalid flags, arguments or file: nothing was done. */
  usage: 2,
  /** The cluster or the agent cannot be queried: unreachable, not permitted, or not installed. */
  unreachable: 3,
  notFound: 4,
} as const;
export type ExitStatus = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with one line for the user: what is wrong, with which value, and what to do. */
export class CliError extends PlumblineError {
  readonly status: ExitStatus;

  constructor(status: ExitStatus, message: string, options?: ErrorOptions) {
    super('cli', message, options);
    this.status = status;
  }
}

/** A wrong argument or value of a flag: the line also names the command's --help. */
export class ArgumentError extends CliError {
  constructor(message: string, options?: ErrorOptions) {
    super(EXIT.usage, message, options);
  }
}

export const usageError = (message: string, options?: ErrorOptions) => new CliError(EXIT.usage, message, options);
export const notFound = (message: string) => new CliError(EXIT.notFound, message);
