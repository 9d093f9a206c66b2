import {
  type ClientRequest,
  Agent as HttpAgent,
  type RequestOptions as HttpRequestOptions,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { underSignals } from '../runtime/time.ts';
import { ACCEPT, decode, queryString, readText, statusError, unreachable } from './calls.ts';
import { type ApiAccess, type KubeClient, KubeError, type RequestOptions } from './client.ts';

const TIMEOUT_SECONDS = 10;

const MAX_CONNECTIONS = 32;

/** Seconds of silence after which the kernel sends a TCP keepalive probe, as in client-go. */
const KEEPALIVE_SECONDS = 30;

/** Milliseconds that a complete exchange waits for its connection if the server answers before it reads the request. */
const RELEASE_MILLISECONDS = 50;

interface Content {
  readonly type: string;
  readonly body: object;
}

interface Answered {
  readonly response: IncomingMessage;
  readonly status: number;
  /** The error that caused a second attempt; the server may have executed the first one. */
  readonly repeatedAfter: Error | undefined;
}

const asJson = (body: object): Content => ({ type: 'application/json', body });

/** The API client of every daemon and of the command, with Node's own HTTPS (ADR 0001). */
export function createKubeClient(access: ApiAccess, userAgent: string, connections = MAX_CONNECTIONS): KubeClient {
  // The delay of `setKeepAlive` below, so that the agent does not set another one after each request.
  const pool = { keepAlive: true, keepAliveMsecs: KEEPALIVE_SECONDS * 1000, maxSockets: connections };
  const agent = access.server.startsWith('https:') ? new HttpsAgent(pool) : new HttpAgent(pool);
  /** Of the last response. */
  let clockOffset = 0;

  const open = async (method: string, path: string, options: RequestOptions, content?: Content) => {
    const body = content === undefined ? undefined : Buffer.from(JSON.stringify(content.body));
    const { headers: credentials, ...tls } = await access.requestOptions();
    const url = access.server + path + queryString(options.query);
    const headers = {
      ...credentials,
      accept: ACCEPT,
      'user-agent': userAgent,
      ...(content !== undefined && { 'content-type': content.type, 'content-length': body?.length }),
    };
    const signal = options.signal === undefined ? {} : { signal: options.signal };
    return new Promise<Answered>((resolve, reject) => {
      attempt({ url, options: { agent, ...tls, method, headers, ...signal }, body, resolve, reject });
    });
  };

  /** Closes idle connections: when one has failed or does not answer, the others may be frozen as well. */
  const closeIdle = () => {
    for (const socket of Object.values(agent.freeSockets).flatMap((sockets) => sockets ?? [])) socket.destroy();
  };

  const exchange = async (method: string, path: string, options: RequestOptions = {}, content?: Content) => {
    try {
      return await underSignals([options.signal], options.timeout ?? TIMEOUT_SECONDS, async (signal) => {
        const { response, status, repeatedAfter } = await open(method, path, { ...options, signal }, content);
        clockOffset = offsetOf(response.headers.date);
        const text = await readText(response, options.largest);
        await released(response);
        if (status < 400) return text === '' ? undefined : decode(path, text, response.headers['content-type']);
        // A Conflict, for example, may be caused by the first attempt's own write. Only the loss of its response is
        // certain.
        if (repeatedAfter !== undefined && method !== 'GET') throw repeatedAfter;
        throw statusError(method, path, status, text);
      });
    } catch (error) {
      if (options.signal?.aborted || error instanceof KubeError) throw error;
      closeIdle();
      throw unreachable(method, path, error);
    }
  };

  const watch = async (path: string, options: RequestOptions) => {
    try {
      const watchOptions = { ...options, query: { ...options.query, watch: true } };
      const { response, status } = await open('GET', path, watchOptions);
      if (status >= 400) throw statusError('WATCH', path, status, await readText(response));
      response.once('close', () => !response.complete && closeIdle());
      return response;
    } catch (error) {
      closeIdle();
      if (options.signal?.aborted || error instanceof KubeError) throw error;
      throw unreachable('WATCH', path, error);
    }
  };

  return {
    get: (path, options) => exchange('GET', path, options),
    create: (path, body, options) => exchange('POST', path, options, asJson(body)),
    replace: (path, body, options) => exchange('PUT', path, options, asJson(body)),
    patch: (path, type, body, options) => exchange('PATCH', path, options, { type, body }),
    delete: (path, options) => exchange('DELETE', path, options, options?.body && asJson(options.body)),
    watch,
    clockOffset: () => clockOffset,
    close: async () => agent.destroy(),
  };
}

interface Exchange {
  readonly url: string;
  readonly options: HttpRequestOptions;
  readonly body: Buffer | undefined;
  readonly resolve: (answered: Answered) => void;
  readonly reject: (error: Error) => void;
}

/** @param repeatedAfter the error of the first attempt, in the second */
function attempt(exchange: Exchange, repeatedAfter?: Error): void {
  const { url, options, body, resolve, reject } = exchange;
  // An agent for a proxy uses TLS only behind a request of node:https.
  const request = (url.startsWith('https:') ? httpsRequest : httpRequest)(url, options);
  // A watch is silent for minutes. Only the kernel notices that a server has disappeared.
  request.on('socket', (socket) => socket.setKeepAlive(true, KEEPALIVE_SECONDS * 1000));
  // A response to a request has a status; IncomingMessage also stands for requests, which have none.
  request.on('response', (response) => resolve({ response, status: response.statusCode as number, repeatedAfter }));
  request.on('error', (error) => {
    // The server may have just closed an idle connection. Every write of Plumbline is safe to repeat.
    const isStale = request.reusedSocket && repeatedAfter === undefined && options.signal?.aborted !== true;
    if (isStale) attempt(exchange, error);
    else reject(error);
  });
  request.end(body);
}

/** A Date header has whole seconds, and the response took some time. */
const MIN_CLOCK_OFFSET_MILLISECONDS = 2000;

function offsetOf(date = ''): number {
  const offset = Date.parse(date) - Date.now();
  return Math.abs(offset) >= MIN_CLOCK_OFFSET_MILLISECONDS ? offset : 0;
}

/** Resolves when the connection is back in the pool: the signal that ends an exchange would close it before. */
function released({ req }: IncomingMessage & { readonly req?: ClientRequest }): Promise<void> {
  return new Promise((resolve) => {
    if (req === undefined || req.closed) return resolve();
    let timer: NodeJS.Timeout | undefined;
    req.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    // Even a cleared timer wakes the process, and most connections return before the next turn of the event loop.
    setImmediate(() => {
      if (!req.closed) timer = setTimeout(resolve, RELEASE_MILLISECONDS);
    });
  });
}
