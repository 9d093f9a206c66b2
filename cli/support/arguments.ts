import { InvalidArgumentError } from 'commander';

/** Parsers of arguments and flags. @throws InvalidArgumentError with the wrong entry */

/** A parser of whole numbers. @param expected in the message about another text */
export const wholeNumber =
  (min: number, max: number, expected: string) =>
  (text: string): number => {
    const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`expected ${expected}`);
    return value;
  };

/** At most as many as a QEMU machine may have. */
export const readVcpus = wholeNumber(1, 4096, '1 to 4096 vCPUs');

/** Of an object's name in Kubernetes. */
export const MAX_NAME_CHARACTERS = 253;

/** A name as the API server accepts it in a path. */
export function objectName(text: string): string {
  if (text !== '' && text.length <= MAX_NAME_CHARACTERS && !text.includes('/')) return text;
  throw new InvalidArgumentError(`expected a name of 1 to ${MAX_NAME_CHARACTERS} characters without /`);
}
