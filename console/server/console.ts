import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { OWNER_LETTERS } from '../../diagnosis/hosts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { VERSION } from '../../runtime/config.ts';
import { HttpServer, isListenerHost, type ListenAddress } from '../../runtime/http-server.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { createCluster } from './cluster.ts';
import type { ConsoleLogger } from './config.ts';
import { Feed } from './feed.ts';
import { createHistories } from './history.ts';
import type { OptionalKind } from './kinds.ts';
import { createQuestions, type QuestionSources, send, sendText } from './questions.ts';
import { EventStream } from './stream.ts';

interface ConsoleOptions extends Omit<QuestionSources, 'histories'> {
  /** Only used for reads. Each kind in KINDS keeps a watch open. */
  readonly client: KubeClient;
  readonly address: ListenAddress;
  readonly assets: string;
  readonly without?: ReadonlySet<OptionalKind>;
  readonly log: ConsoleLogger;
}

/** Connection limit: a browser opens at most six, and 16 pages are served. */
const MAX_CONNECTIONS = 64;
const INTERVAL_SECONDS = 0.1;

/** It does not listen before `server.start` and sends no request before `run`. */
export function createConsole(options: ConsoleOptions) {
  const { client, address, assets, without = new Set<OptionalKind>(), log, ...sources } = options;
  const feed = new Feed();
  const cluster = createCluster({ client, without, feed, log, nowSeconds: monotonicSeconds });
  const histories = createHistories(client);
  const routes = createRoutes({ host: address.host, feed, assets, ...sources, histories, log });

  const fixed = { version: VERSION, letters: OWNER_LETTERS };
  const updateFeed = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const { leader, missing, forbidden } = cluster;
      const changing = { leader, missing, problem: cluster.problem(), notReady: cluster.notReady() };
      feed.update(cluster, { ...changing, ...fixed, without: [...forbidden] });
      await sleep(INTERVAL_SECONDS, signal).catch(() => undefined);
    }
  };

  return {
    server: new HttpServer({ handler: routes.handler, ...address, connections: MAX_CONNECTIONS, streams: true, log }),
    /** Follows the cluster until the signal; never rejects. */
    async run(signal: AbortSignal) {
      await Promise.all([cluster.run(signal), updateFeed(signal)]);
    },
    get missing() {
      return cluster.missing;
    },
    closeStreams: routes.close,
  };
}

interface RouteOptions extends QuestionSources, Pick<ConsoleOptions, 'assets' | 'log'> {
  readonly host: string;
  readonly feed: Feed;
}

const MAX_VIEWERS = 16;

/** The page's files by their paths, each with its type. */
const FILES = new Map<string, readonly [file: string, type: string]>([
  ['/', ['index.html', 'text/html; charset=utf-8']],
  ['/console.js', ['console.js', 'text/javascript; charset=utf-8']],
  ['/console.css', ['console.css', 'text/css; charset=utf-8']],
  ['/icon.svg', ['icon.svg', 'image/svg+xml']],
]);

/** All content comes from this server, no code is evaluated, and no other page may embed this one in a frame. */
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

function createRoutes({ host, feed, assets, log, ...sources }: RouteOptions) {
  const streams = new Set<EventStream>();
  const questions = createQuestions(sources);
  let closed = false;

  const events = (request: IncomingMessage, response: ServerResponse) => {
    if (closed) return sendText(response, 503, 'the console is stopping');
    // A link on another site would take a place that a page of the console needs.
    if (request.headers['sec-fetch-mode'] === 'navigate') return sendText(response, 403, 'open the console itself: /');
    if (feed.viewers >= MAX_VIEWERS) return sendText(response, 503, `${MAX_VIEWERS} pages are already open; close one`);
    const gzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    const stream = new EventStream({ feed, response, gzip });
    streams.add(stream);
    response.once('close', () => streams.delete(stream));
  };

  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const refused = refusal(request, host);
    if (refused) return sendText(response, ...refused);
    const [path = '', search] = (request.url ?? '').split('?', 2);
    const query = new URLSearchParams(search);
    if (path === '/events') return events(request, response);
    if (await questions.answer(path, query, response)) return;
    const asset = FILES.get(path);
    if (asset) return send(response, 200, asset[1], await readFile(join(assets, asset[0])));
    return sendText(response, 404, `not found; paths: /, /events, ${questions.paths.join(', ')}`);
  };

  return {
    handler: (request: IncomingMessage, response: ServerResponse) => {
      route(request, response).catch((error: unknown) => {
        const [status, message] = problem(error);
        if (status === 500) log.error({ err: error }, 'internal error');
        if (response.headersSent) response.destroy();
        else sendText(response, status, message);
      });
    },
    /** Ends the pages' streams and refuses new ones. */
    close() {
      closed = true;
      for (const stream of streams) stream.close();
    },
  };
}

function refusal(request: IncomingMessage, listensOn: string): readonly [number, string] | undefined {
  if (request.method !== 'GET') return [405, 'method not allowed: the console is read-only and answers only GET'];
  if (!isListenerHost(request.headers.host, listensOn)) return [421, 'unexpected Host header; use http://localhost'];
  // Browsers mark requests from pages of other sites. Such a page may link to this one, but nothing else.
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
  const isForeign = site === 'cross-site' || site === 'same-site';
  return isForeign && mode !== 'navigate' ? [403, 'requests from other sites are refused'] : undefined;
}

function problem(error: unknown): readonly [number, string] {
  const isMissing = (error as NodeJS.ErrnoException | null)?.code === 'ENOENT';
  return isMissing
    ? [404, 'this file of the page is missing next to the program; run npm run build to create it']
    : [500, 'internal error; see the log of the console'];
}
