import type { KubeClient, RequestOptions } from './client.ts';
import { KubeError } from './errors.ts';

/** What is sent. */
export interface Content {
  readonly type: string;
  readonly body: object;
}

/** One call: resolves to what its answer's body says, undefined where it is empty. @throws KubeError */
export type Exchange = (method: string, path: string, options: RequestOptions, content?: Content) => Promise<unknown>;

/** Bytes of an answer. The largest object that the API server stores is 1.5 MiB, and it takes 3 MiB in a request. */
export const LARGEST_ANSWER = 16 * 1024 * 1024;
/** Characters of what a server says in a refusal that go into an error. */
const LONGEST_REASON = 64;
const LONGEST_TEXT = 512;

const JSON_TYPE = 'application/json';
/**
 * What client-go sends. Aggregated APIs that declare no produced type (KubeVirt's subresources) answer 406 to a client
 * that accepts JSON alone.
 */
export const ACCEPT = 'application/json, */*';

/** The calls that are answered once, over whatever carries them. */
export function callsOver(exchange: Exchange): Pick<KubeClient, 'get' | 'create' | 'replace' | 'patch' | 'delete'> {
  const asJson = (body: object): Content => ({ type: JSON_TYPE, body });
  return {
    get: (path, options = {}) => exchange('GET', path, options),
    create: (path, body, options = {}) => exchange('POST', path, options, asJson(body)),
    replace: (path, body, options = {}) => exchange('PUT', path, options, asJson(body)),
    patch: (path, type, body, options = {}) => exchange('PATCH', path, options, { type, body }),
    delete: (path, options = {}) => exchange('DELETE', path, options, options.body && asJson(options.body)),
  };
}

/** With its question mark; empty if there is nothing to ask. */
export function queryString(query: RequestOptions['query']): string {
  const pairs = Object.entries(query ?? {}).flatMap(([key, value]): [string, string][] =>
    value === undefined ? [] : [[key, String(value)]],
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

/** @throws KubeError `BadAnswer` */
export function decode(path: string, text: string, type = 'no content type'): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KubeError(0, 'BadAnswer', `${path}: the answer (${type}) is not JSON`, { cause: error });
  }
}

/** What an answer of 400 or more says. */
export function statusError(method: string, path: string, status: number, text: string): KubeError {
  let reason = `HTTP${status}`;
  let message = '';
  try {
    const body = JSON.parse(text) as { reason?: unknown; message?: unknown };
    if (typeof body.reason === 'string') reason = body.reason.slice(0, LONGEST_REASON);
    if (typeof body.message === 'string' && body.message !== '') message = `: ${body.message.slice(0, LONGEST_TEXT)}`;
  } catch {
    // What stands between here and the server may answer with plain text: the status says enough.
  }
  return new KubeError(status, reason, `${method} ${path}: ${status} ${reason}${message}`);
}

/** The server did not answer. */
export function unreachable(method: string, path: string, error: unknown): KubeError {
  // Node.js calls every request that a signal ends "aborted"; why it did is the cause.
  const { name, message, cause } = error as Error;
  const why = name === 'AbortError' && cause instanceof Error ? cause.message : message;
  return new KubeError(0, 'Unreachable', `${method} ${path}: ${why}`, { cause: error });
}

/** @throws KubeError `TooLarge`; the rest is not read */
export async function readText(body: AsyncIterable<Uint8Array>, largest = LARGEST_ANSWER): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > largest) throw new KubeError(0, 'TooLarge', `the answer is larger than ${largest} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
