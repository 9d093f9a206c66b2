import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { underSignals } from '../runtime/signals.ts';
import type { ApiAccess } from './api-access.ts';
import { ACCEPT, type Content, callsOver, decode, queryString, readText, statusError, unreachable } from './calls.ts';
import type { KubeClient, RequestOptions } from './client.ts';
import { KubeError } from './errors.ts';

/** Seconds for a whole exchange. */
const TIMEOUT = 10;
/** Connections that are kept at most. A watch holds one. */
const CONNECTIONS = 4;

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
            accept: ACCEPT,
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
    let answer: { status: number; type: string | undefined; text: string };
    try {
      answer = await underSignals([options.signal], options.timeout ?? TIMEOUT, async (signal) => {
        const response = await open(method, path, { ...options, signal }, content);
        const { statusCode: status = 0, headers } = response;
        return { status, type: headers['content-type'], text: await readText(response, options.largest) };
      });
    } catch (error) {
      if (options.signal?.aborted || error instanceof KubeError) throw error;
      throw unreachable(method, path, error);
    }
    if (answer.status >= 400) throw statusError(method, path, answer.status, answer.text);
    return answer.text === '' ? undefined : decode(path, answer.text, answer.type);
  };

  return {
    ...callsOver(exchange),
    async watch(path, options) {
      const query = { ...options.query, watch: true };
      const response = await open('GET', path, { ...options, query }, undefined);
      if ((response.statusCode ?? 0) < 400) return response;
      throw statusError('WATCH', path, response.statusCode ?? 0, await readText(response));
    },
    close: async () => agent.destroy(),
  };
}
