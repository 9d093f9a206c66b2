import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'yaml';
import { readText } from '../../kube/calls.ts';
import { KubeError } from '../../kube/client.ts';
import type { Json, JsonObject } from '../objects.ts';
import { badRequest, tooLarge, unsupportedMediaType } from './errors.ts';

/** Limit of a request's body in bytes, as in the API server. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

export const contentType = (request: IncomingMessage) =>
  (request.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();

/**
 * The decoded body, or undefined if there is none.
 * @throws ApiError 400 if it is not JSON (or YAML, if the client declares that), 413, 415 for protobuf
 */
export async function readBody(request: IncomingMessage): Promise<Json | undefined> {
  const text = await readText(request, MAX_BODY_BYTES).catch((error: unknown) => {
    throw error instanceof KubeError ? tooLarge(MAX_BODY_BYTES) : error;
  });
  if (text === '') return undefined;
  const type = contentType(request);
  if (type.includes('protobuf') || type.includes('cbor')) {
    throw unsupportedMediaType(type, ['application/json', 'application/yaml']);
  }
  try {
    return (type.includes('yaml') ? parse(text) : JSON.parse(text)) as Json;
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${(error as Error).message}`, { cause: error });
  }
}

/** Responds with JSON. Content-Length is always set. */
export function sendJson(response: ServerResponse, status: number, body: JsonObject): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}

/** A Warning header's value: code 299, no agent, the text quoted (RFC 7234). */
export function warningHeader(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters may not stand in a header
  const clean = text.replace(/[\u0000-\u001f\u007f]+/g, ' ').replace(/["\\]/g, '\\$&');
  return `299 - "${Buffer.from(clean, 'utf8').toString('latin1')}"`;
}
