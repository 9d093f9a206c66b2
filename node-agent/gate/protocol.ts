import type { CniError } from '../../model/cni/decide.ts';
import { quote } from '../../model/errors.ts';

/** The CNI specification's verbs, all that a shim can send. */
const VERBS = ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION'] as const;
export type Verb = (typeof VERBS)[number];

/** The shim's request: the runtime's call as it arrived. native/cni/gate.h describes both sides of the protocol. */
export interface Question {
  readonly verb: Verb;
  readonly environment: ReadonlyMap<string, string>;
  readonly conf: string;
}

/** Bytes. The shim itself refuses a longer environment. */
const MAX_ENVIRONMENT_BYTES = 64 * 1024;
const MAX_CONF_BYTES = 1024 * 1024;
const MAX_HEAD_BYTES = 128;
const HEAD = /^plumbline-gate\/1 ([A-Z]{1,8}) (\d{1,8}) (\d{1,8})$/;

/** The bytes are not a request of this agent's shim. */
export class ProtocolError extends Error {}

interface Head {
  readonly verb: Verb;
  /** Offsets of the environment, of the configuration and of the end. */
  readonly offsets: readonly [environment: number, conf: number, end: number];
}

/** Reads one request in pieces. It copies each byte once, and keeps nothing of a request that is too long. */
export class QuestionReader {
  /** Undefined until the first line is complete. */
  #head: Head | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  /** Number of bytes in `#bytes` that have arrived. */
  #length = 0;

  /** Bytes that it keeps. */
  get size(): number {
    return this.#bytes.length;
  }

  /** @returns the request once it is complete @throws ProtocolError */
  read(chunk: Buffer): Question | undefined {
    if (this.#head === undefined) {
      const received = Buffer.concat([this.#bytes, chunk]);
      this.#head = readHead(received);
      this.#bytes = this.#head === undefined ? received : Buffer.allocUnsafe(this.#head.offsets[2]);
      this.#length = this.#head === undefined ? received.length : received.copy(this.#bytes);
    } else this.#length += chunk.copy(this.#bytes, this.#length);
    if (this.#head === undefined || this.#length < this.#bytes.length) return undefined;
    const [environment, conf, end] = this.#head.offsets;
    return {
      verb: this.#head.verb,
      environment: variables(this.#bytes.toString('utf8', environment, conf)),
      conf: this.#bytes.toString('utf8', conf, end),
    };
  }
}

function readHead(bytes: Buffer): Head | undefined {
  const newline = bytes.subarray(0, MAX_HEAD_BYTES).indexOf(10);
  if (newline < 0) {
    if (bytes.length >= MAX_HEAD_BYTES) throw new ProtocolError('the first line is too long');
    return undefined;
  }
  const line = bytes.toString('latin1', 0, newline);
  const [, word, environmentLength, confLength] = HEAD.exec(line) ?? [];
  const verb = VERBS.find((name) => name === word);
  if (verb === undefined) throw new ProtocolError(`not a request in version 1: ${quote(line)}`);
  const [environmentBytes, confBytes] = [Number(environmentLength), Number(confLength)];
  if (environmentBytes > MAX_ENVIRONMENT_BYTES || confBytes > MAX_CONF_BYTES)
    throw new ProtocolError('the request is too long');
  const start = newline + 1;
  const conf = start + environmentBytes;
  return { verb, offsets: [start, conf, conf + confBytes] };
}

/** Reads `NAME=value` entries that end with a NUL; entries without `=` are skipped. */
function variables(text: string): ReadonlyMap<string, string> {
  const entries = text.split('\0').filter((entry) => entry.includes('='));
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
}

export const ALLOW = 'allow\n';
/** Announces that the answer takes longer, up to two and a half seconds after the request. */
export const WAIT = 'wait\n';

/** Bytes. The shim has a buffer of two kilobytes. */
const MAX_MESSAGE_CHARACTERS = 1500;

/** @returns a refusal in wire format; a message that is too long is cut at a character */
export function denial({ code, message }: CniError): Buffer {
  let text = Buffer.from(message.slice(0, MAX_MESSAGE_CHARACTERS));
  if (text.length > MAX_MESSAGE_CHARACTERS) {
    let end = MAX_MESSAGE_CHARACTERS;
    while (((text[end] ?? 0) & 0xc0) === 0x80) end--;
    text = text.subarray(0, end);
  }
  return Buffer.concat([Buffer.from(`deny ${code} ${text.length}\n`), text]);
}
