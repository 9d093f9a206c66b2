import { KubeError, type RequestOptions } from './client.ts';

/** Bytes of a response. The API server stores objects of at most 1.5 MiB and accepts requests of at most 3 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_REASON_CHARACTERS = 64;
const MAX_TEXT_CHARACTERS = 512;

/** As client-go: KubeVirt's subresources respond with 406 to a client that accepts only JSON. */
export const ACCEPT = 'application/json, */*';

/** A query string with its question mark; empty without parameters. */
export function queryString(query: RequestOptions['query']): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) if (value !== undefined) parameters.set(key, String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/** Decodes a JSON response. @throws KubeError `BadAnswer` if it is not JSON */
export function decode(path: string, text: string, type = 'no content type'): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KubeError(0, 'BadAnswer', `${path}: the answer (${type}) is not JSON`, { cause: error });
  }
}

/** The error for a response with a status of 400 or more. */
export function statusError(method: string, path: string, status: number, text: string): KubeError {
  let reason = `HTTP${status}`;
  let message = '';
  try {
    const body = JSON.parse(text) as { reason?: unknown; message?: unknown };
    if (typeof body.reason === 'string') reason = body.reason.slice(0, MAX_REASON_CHARACTERS);
    if (typeof body.message === 'string' && body.message) message = `: ${body.message.slice(0, MAX_TEXT_CHARACTERS)}`;
  } catch {
    // A proxy in front of the server may respond with plain text; the status is enough then.
  }
  return new KubeError(status, reason, `${method} ${path}: ${status} ${reason}${message}`);
}

/** The error for a server that did not respond. */
export function unreachable(method: string, path: string, error: unknown): KubeError {
  // Node.js reports "aborted" for every request that a signal ends; the cause has the reason.
  const { name, message, cause } = error as Error;
  const why = name === 'AbortError' && cause instanceof Error ? cause.message : message;
  return new KubeError(0, 'Unreachable', `${method} ${path}: ${why}`, { cause: error });
}

/** Reads a response as text. @param largest in bytes @throws KubeError `TooLarge`; it does not read the rest */
export async function readText(body: AsyncIterable<Uint8Array>, largest = MAX_ANSWER_BYTES): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > largest) throw new KubeError(0, 'TooLarge', `the answer is larger than ${largest} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
