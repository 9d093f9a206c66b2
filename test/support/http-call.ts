import { request } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { text } from 'node:stream/consumers';

interface HttpCall {
  /** On 127.0.0.1. */
  readonly port: number;
  readonly path: string;
  /** Default: POST with a body, otherwise GET. */
  readonly method?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Over TLS: the only authority that is trusted, or whether any certificate is. Default: plain HTTP. */
  readonly trust?: string | 'any';
  readonly signal?: AbortSignal;
}

/** One request of JSON on a connection of its own, without a timer of this process. @throws Error without an answer */
export function httpCall({ body, headers, trust, ...call }: HttpCall) {
  const options = {
    host: '127.0.0.1',
    method: body === undefined ? 'GET' : 'POST',
    agent: false as const,
    ...call,
    headers: { 'content-type': 'application/json', ...headers },
    ...(trust === 'any' ? { rejectUnauthorized: false } : { ca: trust }),
  };
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const sent = (trust === undefined ? request : tlsRequest)(options, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, text: answer }), reject);
    });
    sent.on('error', reject).end(body);
  });
}
