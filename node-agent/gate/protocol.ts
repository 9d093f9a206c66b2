import type { Refusal } from '../../model/cni/errors.ts';

/** What the shim asks: the runtime's call as it came in. native/cni/agent.h describes both sides of the wire. */
export interface Question {
  readonly verb: string;
  readonly form: 'chained' | 'wrapper' | 'interposer';
  /** The CNI_ variables. */
  readonly environment: ReadonlyMap<string, string>;
  readonly conf: string;
}

/** Bytes; the shim refuses more by itself. */
const MOST_ENVIRONMENT = 64 * 1024;
const MOST_CONF = 1024 * 1024;
const LONGEST_HEAD = 128;
const HEAD = /^plumbline-gate\/1 ([A-Z]{1,8}) (chained|wrapper|interposer) (\d{1,8}) (\d{1,8})$/;

/** Not a question of the shim that this agent belongs to. */
export class ProtocolError extends Error {}

/**
 * Reads a question from the bytes that have come in so far.
 * @returns undefined as long as it is not whole
 * @throws ProtocolError
 */
export function readQuestion(bytes: Buffer): Question | undefined {
  const newline = bytes.subarray(0, LONGEST_HEAD).indexOf(10);
  if (newline < 0) {
    if (bytes.length >= LONGEST_HEAD) throw new ProtocolError('the first line is too long');
    return undefined;
  }
  const line = bytes.subarray(0, newline).toString('latin1');
  const match = HEAD.exec(line);
  if (match === null) throw new ProtocolError(`not a question in version 1: ${JSON.stringify(line)}`);
  const [, verb = '', form, environmentLength, confLength] = match;
  const [environmentBytes, confBytes] = [Number(environmentLength), Number(confLength)];
  if (environmentBytes > MOST_ENVIRONMENT || confBytes > MOST_CONF) throw new ProtocolError('the question is too long');
  const start = newline + 1;
  if (bytes.length < start + environmentBytes + confBytes) return undefined;
  const environment = bytes.subarray(start, start + environmentBytes).toString('utf8');
  const conf = bytes.subarray(start + environmentBytes, start + environmentBytes + confBytes).toString('utf8');
  return { verb, form: form as Question['form'], environment: variables(environment), conf };
}

function variables(text: string): ReadonlyMap<string, string> {
  const entries = text.split('\0').filter((entry) => entry.includes('='));
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
}

export const ALLOW = 'allow\n';
/** The answer takes longer, up to two and a half seconds. */
export const WAIT = 'wait\n';

/** Bytes; the shim has room for two kilobytes. */
const LONGEST_MESSAGE = 1500;

/** @returns a refusal as it goes over the wire; a message that is too long is cut at a character */
export function denial({ code, message }: Refusal): Buffer {
  let text = Buffer.from(message);
  if (text.length > LONGEST_MESSAGE) {
    let end = LONGEST_MESSAGE;
    while (((text[end] ?? 0) & 0xc0) === 0x80) end--;
    text = text.subarray(0, end);
  }
  return Buffer.concat([Buffer.from(`deny ${code} ${text.length}\n`), text]);
}
