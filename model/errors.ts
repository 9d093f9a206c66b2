import type * as z from 'zod';

/** Its message is for the person who wrote the input. `code` is stable and may label a metric. */
export class PlumblineError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Text that does not match its format: a CPU list, a mask, a quantity, an annotation. */
export class ParseError extends PlumblineError {
  constructor(what: string, text: string, why: string, options?: ErrorOptions) {
    super('parse', `${what} ${quote(text)}: ${why}`, options);
  }
}

/** Undefined for an input that cannot be read: one that causes a PlumblineError. */
export function readableOrNone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PlumblineError) return undefined;
    throw error;
  }
}

const MAX_QUOTED_CHARACTERS = 80;

/** The text for a message: quoted, control characters escaped, cut after 80 characters. */
export function quote(text: string): string {
  return text.length > MAX_QUOTED_CHARACTERS
    ? `${JSON.stringify(text.slice(0, MAX_QUOTED_CHARACTERS))}…`
    : JSON.stringify(text);
}

export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  // A cut must not leave the first half of a surrogate pair alone.
  return `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Returns the first texts, each cut to `longest` characters, and the number of further ones. */
export function few(texts: readonly string[], most: number, longest: number): string[] {
  const shortened = texts.slice(0, most).map((text) => cut(text, longest));
  return texts.length > most ? [...shortened, `and ${texts.length - most} more`] : shortened;
}

const MAX_ISSUES_CHARACTERS = 300;
const MAX_ISSUE_CHARACTERS = 120;
/** A part of a path that is safe to print. Others may control a terminal, and the writer of the object chose them. */
const PLAIN_KEY = /^[\w./-]{1,80}$/;

/** The first few places where a value does not match its schema, on one line, without the value. */
export function issuesText(error: z.ZodError): string {
  const issues = error.issues.slice(0, 3).map(({ path, message }) => {
    const where = path.map((part) => (PLAIN_KEY.test(String(part)) ? String(part) : '*')).join('.');
    return `${where || 'the whole'}: ${cut(issueText(message), MAX_ISSUE_CHARACTERS)}`;
  });
  return cut(issues.join('; '), MAX_ISSUES_CHARACTERS);
}

/** Of each part of the first problem of a configuration. */
const MAX_PROBLEM_CHARACTERS = 200;

/** The first problem of an administrator's configuration, with its path. */
export function firstIssue({ issues: [issue] }: z.ZodError): string {
  const where = issue?.path.map(String).join('.') || 'the whole';
  return `${cut(where, MAX_PROBLEM_CHARACTERS)}: ${cut(issueText(issue?.message ?? 'malformed'), MAX_PROBLEM_CHARACTERS)}`;
}

/** Without the words with which zod begins those that no schema replaces. */
export function issueText(message: string): string {
  return /^Invalid input: .* received undefined$/.test(message)
    ? 'missing'
    : message.replace(/^(Invalid|Too) \w+: /, '');
}

/** The message of an error; of one of zod the places in one line, instead of JSON. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === 'ZodError' || error.name === '$ZodError' ? issuesText(error as z.ZodError) : error.message;
}

/** An `error` refuses its subject, `information` needs no correction. */
export type Severity = 'error' | 'warning' | 'information';

export interface Finding {
  readonly severity: Severity;
  /** Stable, with low cardinality. */
  readonly code: string;
  readonly message: string;
  /** CamelCase: the reason of its Event, if it differs from the default of its severity. */
  readonly reason?: string;
}
