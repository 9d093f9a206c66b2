/**
 * An error whose message is for the person who wrote the input: what is wrong, with which value, and what to do. `code`
 * is stable and has low cardinality, so it can label a metric and select a protocol's status.
 */
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

const SHOWN = 80;

/** The text for a message: quoted, control characters escaped, cut after 80 characters. */
export function quote(text: string): string {
  return text.length > SHOWN ? `${JSON.stringify(text.slice(0, SHOWN))}…` : JSON.stringify(text);
}
