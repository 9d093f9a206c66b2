import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ApiAccess } from './api-access.ts';
import type { KubeClient, RequestOptions } from './client.ts';
import { KubeError } from './errors.ts';

/** Seconds for a whole exchange. */
const TIMEOUT = 10;
/** Connections that are kept at most. A watch holds one. */
const CONNECTIONS = 4;

interface Content {
  readonly type: string;
  readonly body: object;
}

/**
 * A client of the API server on Node's own HTTPS: the pool and the credential plugins of the other one would take a third
 * of a small daemon's memory (see docs/adr/0030).
 */
export function createApiClient(access: ApiAccess, userAgent: string, connections = CONNECTIONS): KubeClient {
  const { server, ca, cert, key, verify, serverName } = access;
  const isTls = server.startsWith('https:');
  const agent = isTls
    ? new HttpsAgent({
        keepAlive: true,
        maxSockets: connections,
        rejectUnauthorized: verify,
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        ...(serverName !== undefined && { servername: serverName }),
      })
    : new HttpAgent({ keepAlive: true, maxSockets: connections });
  const makeRequest = isTls ? httpsRequest : httpRequest;

  const open = (method: string, path: string, options: RequestOptions, content: Content | undefined) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const body = content === undefined ? undefined : Buffer.from(JSON.stringify(content.body));
      const token = access.token();
      const attempt = (retried: boolean) => {
        const request = makeRequest(server + path + queryString(options.query), {
          agent,
          method,
          headers: {
            accept: 'application/json',
            'user-agent': userAgent,
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
            ...(content !== undefined && { 'content-type': content.type, 'content-length': body?.length }),
          },
          ...(options.signal !== undefined && { signal: options.signal }),
        });
        request.on('response', resolve);
        request.on('error', (error) => {
          // The server may have closed a kept connection just then; all that is written here may be written twice.
          if (request.reusedSocket && !retried && options.signal?.aborted !== true) attempt(true);
          else reject(error);
        });
        request.end(body);
      };
      attempt(false);
    });

  const exchange = async (method: string, path: string, options: RequestOptions, content?: Content) => {
    const signals = [AbortSignal.timeout((options.timeout ?? TIMEOUT) * 1000), options.signal];
    const signal = AbortSignal.any(signals.filter((one) => one !== undefined));
    let answer: { status: number; text: string };
    try {
      const response = await open(method, path, { ...options, signal }, content);
      answer = { status: response.statusCode ?? 0, text: await readText(response) };
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new KubeError(0, 'Unreachable', `${method} ${path}: ${(error as Error).message}`, { cause: error });
    }
    if (answer.status >= 400) throw statusError(method, path, answer.status, answer.text);
    return answer.text === '' ? undefined : decode(path, answer.text);
  };

  const json = 'application/json';
  return {
    get: (path, options = {}) => exchange('GET', path, options),
    create: (path, body, options = {}) => exchange('POST', path, options, { type: json, body }),
    replace: (path, body, options = {}) => exchange('PUT', path, options, { type: json, body }),
    patch: (path, type, body, options = {}) => exchange('PATCH', path, options, { type, body }),
    delete: (path, options = {}) =>
      exchange('DELETE', path, options, options.body === undefined ? undefined : { type: json, body: options.body }),
    async watch(path, options) {
      const query = { ...options.query, watch: true };
      const response = await open('GET', path, { ...options, query }, undefined);
      if ((response.statusCode ?? 0) < 400) return response;
      throw statusError('WATCH', path, response.statusCode ?? 0, await readText(response));
    },
    close: async () => agent.destroy(),
  };
}

function queryString(query: RequestOptions['query']): string {
  const pairs = Object.entries(query ?? {}).flatMap(([key, value]): [string, string][] =>
    value === undefined ? [] : [[key, String(value)]],
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function decode(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KubeError(0, 'BadAnswer', `${path}: the answer is not JSON`, { cause: error });
  }
}

function statusError(method: string, path: string, status: number, text: string): KubeError {
  let reason = `HTTP${status}`;
  let message = '';
  try {
    const body = JSON.parse(text) as { reason?: string; message?: string };
    reason = body.reason ?? reason;
    message = body.message === undefined ? '' : `: ${body.message}`;
  } catch {
    // What stands between agent and server may answer with plain text: the status says enough.
  }
  return new KubeError(status, reason, `${method} ${path}: ${status} ${reason}${message}`);
}
