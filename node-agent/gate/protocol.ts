import type { CniError } from '../../model/cni/errors.ts';
import { quote } from '../../model/errors.ts';

/** The CNI specification's verbs: all that a shim can send. */
const VERBS = ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION'] as const;
export type Verb = (typeof VERBS)[number];

/** What the shim asks: the runtime's call as it came in. native/cni/agent.h describes both sides of the wire. */
export interface Question {
  readonly verb: Verb;
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

/** What the first line says: what is asked, and how many bytes follow. */
interface Head {
  readonly verb: Verb;
  readonly form: Question['form'];
  /** Where the environment begins, where the configuration does, and where the question ends. */
  readonly places: readonly [environment: number, conf: number, end: number];
}

/** Reads one question in pieces. Each byte is copied once, and of a question that is too long none is kept. */
export interface QuestionReader {
  /**
   * @returns the question once it is whole
   * @throws ProtocolError
   */
  read(chunk: Buffer): Question | undefined;
  /** Bytes that the question takes, as far as that is known. */
  readonly size: number;
}

export function createQuestionReader(): QuestionReader {
  let head: Head | undefined;
  let bytes: Buffer = Buffer.alloc(0);
  /** Of `bytes`, those that have come in. */
  let length = 0;

  const take = (chunk: Buffer): void => {
    if (head !== undefined) {
      length += chunk.copy(bytes, length);
      return;
    }
    const begun = Buffer.concat([bytes, chunk]);
    head = readHead(begun);
    bytes = head === undefined ? begun : Buffer.allocUnsafe(head.places[2]);
    length = head === undefined ? begun.length : begun.copy(bytes);
  };

  return {
    get size() {
      return bytes.length;
    },
    read(chunk) {
      take(chunk);
      if (head === undefined || length < bytes.length) return undefined;
      const { verb, form, places } = head;
      const [environment, conf, end] = places;
      return {
        verb,
        form,
        environment: variables(bytes.toString('utf8', environment, conf)),
        conf: bytes.toString('utf8', conf, end),
      };
    },
  };
}

/** @returns undefined as long as the first line is not whole @throws ProtocolError */
function readHead(bytes: Buffer): Head | undefined {
  const newline = bytes.subarray(0, LONGEST_HEAD).indexOf(10);
  if (newline < 0) {
    if (bytes.length >= LONGEST_HEAD) throw new ProtocolError('the first line is too long');
    return undefined;
  }
  const line = bytes.toString('latin1', 0, newline);
  const [, given, form, environmentLength, confLength] = HEAD.exec(line) ?? [];
  const verb = VERBS.find((known) => known === given);
  if (verb === undefined) throw new ProtocolError(`not a question in version 1: ${quote(line)}`);
  const [environmentBytes, confBytes] = [Number(environmentLength), Number(confLength)];
  if (environmentBytes > MOST_ENVIRONMENT || confBytes > MOST_CONF) throw new ProtocolError('the question is too long');
  const start = newline + 1;
  const conf = start + environmentBytes;
  return { verb, form: form as Question['form'], places: [start, conf, conf + confBytes] };
}

function variables(text: string): ReadonlyMap<string, string> {
  const entries = text.split('\0').filter((entry) => entry.includes('='));
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
}

export const ALLOW = 'allow\n';
/** The answer takes longer, up to two and a half seconds since the question. */
export const WAIT = 'wait\n';

/** Bytes; the shim has room for two kilobytes. */
const LONGEST_MESSAGE = 1500;

/** @returns a refusal as it goes over the wire; a message that is too long is cut at a character */
export function denial({ code, message }: CniError): Buffer {
  let text = Buffer.from(message.slice(0, LONGEST_MESSAGE));
  if (text.length > LONGEST_MESSAGE) {
    let end = LONGEST_MESSAGE;
    while (((text[end] ?? 0) & 0xc0) === 0x80) end--;
    text = text.subarray(0, end);
  }
  return Buffer.concat([Buffer.from(`deny ${code} ${text.length}\n`), text]);
}
