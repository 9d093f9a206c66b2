import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { PlumblineError } from '../../model/errors.ts';
import { createHttpServer } from '../../runtime/http-server.ts';
import type { Logger } from '../../runtime/log.ts';
import { NotNow } from '../extender/extender.ts';
import { type ConsoleAddress, isLoopback, isOwnHost } from './address.ts';
import { type ExplanationSource, explainPod } from './explanation.ts';
import type { Feed } from './feed.ts';
import { streamEvents } from './stream.ts';

export interface ConsoleOptions extends ExplanationSource {
  readonly address: ConsoleAddress;
  readonly feed: Feed;
  /** The folder of the page's files. */
  readonly assets: string;
  readonly log: Logger;
}

/** The read-only page, on a listener of its own. Nothing that it answers changes anything. */
export interface Console {
  /** Never rejects: a console that cannot be served keeps nobody from deciding. */
  start(): Promise<void>;
  stop(): Promise<void>;
  readonly port: number;
}

/** Pages that are kept up to date at the same time. */
const MOST_VIEWERS = 16;

const FILES: Readonly<Record<string, { readonly file: string; readonly type: string }>> = {
  '/': { file: 'index.html', type: 'text/html; charset=utf-8' },
  '/console.js': { file: 'console.js', type: 'text/javascript; charset=utf-8' },
  '/console.css': { file: 'console.css', type: 'text/css; charset=utf-8' },
  '/icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
};

/** Everything comes from here, nothing is evaluated, and no other page may show this one in a frame. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

export function createConsole({ address, feed, assets, extender, client, log }: ConsoleOptions): Console {
  const streams = new Set<{ close(): void }>();
  let explaining = false;

  const explain = async (name: string, response: ServerResponse) => {
    if (explaining) {
      response.setHeader('retry-after', '1');
      return text(response, 503, 'another pod is being explained; ask again in a second');
    }
    const left = new AbortController();
    response.once('close', () => left.abort());
    explaining = true;
    try {
      const found = await explainPod({ extender, client }, name, left.signal);
      answer(response, 200, 'application/json', JSON.stringify(found));
    } finally {
      explaining = false;
    }
  };

  const events = (request: IncomingMessage, response: ServerResponse, after: string | null) => {
    if (feed.viewers >= MOST_VIEWERS) return text(response, 503, `${MOST_VIEWERS} pages are open already`);
    const stream = streamEvents({
      feed,
      response,
      gzip: /\bgzip\b/.test(request.headers['accept-encoding'] ?? ''),
      lastId: headerOf(request, 'last-event-id') ?? after ?? undefined,
    });
    streams.add(stream);
    response.once('close', () => streams.delete(stream));
  };

  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const refused = refusal(request, address.host);
    if (refused) return text(response, ...refused);
    const [path = '', search] = (request.url ?? '').split('?', 2);
    const query = new URLSearchParams(search);
    if (path === '/events') return events(request, response, query.get('after'));
    if (path === '/explain') return explain(query.get('pod') ?? '', response);
    const asset = Object.hasOwn(FILES, path) ? FILES[path] : undefined;
    if (asset) return answer(response, 200, asset.type, await readFile(join(assets, asset.file)));
    return text(response, 404, 'there are /, /events and /explain?pod=namespace/name');
  };

  const server = createHttpServer({
    streams: true,
    ...address,
    handler: (request, response) => {
      route(request, response).catch((error: unknown) => {
        const [status, message] = problem(error);
        if (status === 500) log.error({ err: error }, 'the console failed to answer');
        if (response.headersSent) response.destroy();
        else text(response, status, message);
      });
    },
    log,
  });

  return {
    async start() {
      try {
        await server.start();
      } catch (err) {
        log.warn({ err, ...address }, 'the console is not served; everything else is (--console-address)');
        return;
      }
      log.info({ consolePort: server.port, host: address.host }, 'serving the console');
      if (!isLoopback(address.host)) {
        log.warn({ host: address.host }, 'the console asks nobody who he is, and can be reached from elsewhere');
      }
    },
    async stop() {
      for (const stream of streams) stream.close();
      feed.stop();
      await server.stop(0);
    },
    get port() {
      return server.port;
    },
  };
}

/** Why a request is not even looked at. */
function refusal(request: IncomingMessage, listensOn: string): readonly [number, string] | undefined {
  if (request.method !== 'GET') return [405, 'only GET is answered: nothing can be changed'];
  if (!isOwnHost(request.headers.host, listensOn)) {
    return [421, 'the Host header names another host; use http://localhost with kubectl port-forward'];
  }
  // Browsers say so of requests that another site's page makes. A link from there may lead here, and nothing else.
  const isForeign = ['cross-site', 'same-site'].includes(headerOf(request, 'sec-fetch-site') ?? '');
  if (isForeign && headerOf(request, 'sec-fetch-mode') !== 'navigate') return [403, 'not for other sites'];
  return undefined;
}

function problem(error: unknown): readonly [number, string] {
  if (error instanceof NotNow) return [503, error.message];
  if (error instanceof PlumblineError) return [error.code === 'kube' ? 502 : 400, error.message];
  if ((error as NodeJS.ErrnoException | null)?.code === 'ENOENT') {
    return [404, 'this file of the page is missing beside the program: npm run build makes it'];
  }
  return [500, 'the console failed to answer; the log says why'];
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function text(response: ServerResponse, status: number, message: string): void {
  if (status === 405) response.setHeader('allow', 'GET');
  answer(response, status, 'text/plain; charset=utf-8', `${message}\n`);
}

function answer(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
