/**
 * An error whose message is meant for the person who gave the input: what was wrong, with which value, what to do.
 * `code` is stable and of low cardinality, so it can label a metric and steer an answer at a protocol's edge.
 */
export class PlumblineError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Text that is not what its format says: a cpu list, a mask, a quantity, an annotation. */
export class ParseError extends PlumblineError {
  constructor(what: string, text: string, why: string, options?: ErrorOptions) {
    super('parse', `${what} ${quote(text)}: ${why}`, options);
  }
}

const SHOWN = 80;

/** The text as it can stand in a message: quoted, control characters escaped, cut after 80 characters. */
export function quote(text: string): string {
  return text.length > SHOWN ? `${JSON.stringify(text.slice(0, SHOWN))}…` : JSON.stringify(text);
}
