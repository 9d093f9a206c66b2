import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express';
import { PlumblineError } from '../../model/errors.ts';
import type { UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { assertBoundedJson, JsonTooLarge } from '../../runtime/json-bounds.ts';
import type { Logger } from '../../runtime/log.ts';
import { ArgsError, parseExtenderArgs } from '../extender/args.ts';
import type { Explainer } from '../extender/explain.ts';
import { type Extender, NotNow } from '../extender/extender.ts';
import { preempt } from '../extender/preempt.ts';
import { filterError, filterResult } from '../extender/result.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';

type Verb = 'filter' | 'prioritize' | 'preempt';

/** Bytes of the largest body: a pod of 3 MiB and 15,000 node names of 63 characters. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;

export interface ExtenderAppOptions {
  readonly extender: Extender;
  readonly explainer: Explainer;
  /** Awaited before each verdict. Default: nothing. */
  readonly called?: () => Promise<void>;
  readonly unpredictable: UnpredictablePolicy;
  readonly metrics: ExtenderMetrics;
  /** Called before any part of a request is read. Default: every caller may use every route. */
  readonly guard?: RequestHandler;
  readonly log: Logger;
}

export interface ExtenderApp {
  readonly handler: Express;
  /** Ends connections, so that callers connect to the active replica. */
  closeSockets(): void;
}

/**
 * The extender's routes. Any error in a filter call is answered with HTTP 200 and the protocol's Error field: with
 * another status, the scheduler's message would not contain the cause. No error is ever answered with "all nodes fit".
 */
export function createExtenderApp(options: ExtenderAppOptions): ExtenderApp {
  const { extender, explainer, called, unpredictable, metrics, log } = options;
  const sockets = new Set<Socket>();
  /** Filter calls whose bodies are arriving. */
  const arriving = new Set<Request>();

  const verbs: Readonly<Record<Verb, (body: unknown) => object>> = {
    filter(body) {
      const args = parseExtenderArgs(body);
      return filterResult(extender.filter(args, arriving.size), args.nodes);
    },
    prioritize: (body) => extender.prioritize(parseExtenderArgs(body)),
    preempt: (body) => preempt(extender, unpredictable, body),
  };

  const beginFilter: RequestHandler = (request, _response, next) => {
    arriving.add(request);
    next();
  };
  const parseJson = express.json({
    limit: MAX_BODY_BYTES,
    inflate: false,
    strict: false,
    type: () => true,
    verify(_request, response, body) {
      (response as express.Response).locals['arrived'] = performance.now();
      if (body.length === 0) throw new ArgsError('the body is empty: expected JSON');
      assertBoundedJson(body);
    },
  });
  const endArrival: RequestHandler = (request, _response, next) => {
    arriving.delete(request);
    next();
  };
  const failArrival: ErrorRequestHandler = (error: unknown, request, _response, next) => {
    arriving.delete(request);
    next(error);
  };
  /** A limit on the bytes of all bodies in flight belongs before the parser. */
  const readBody = [parseJson, endArrival, failArrival];

  const answer =
    (verb: Verb): RequestHandler =>
    async (request, response) => {
      await called?.();
      const result = verbs[verb](request.body);
      // Check again after the work: the process may have been suspended in between.
      extender.assertActive();
      send(response, 200, 'application/json', JSON.stringify(result));
      metrics.calls.inc({ verb, outcome: 'ok' });
      metrics.seconds.observe({ verb }, (performance.now() - Number(response.locals['arrived'])) / 1000);
    };

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(({ socket }, _response, next) => {
    track(sockets, socket);
    next();
  });
  if (options.guard !== undefined) app.use(options.guard);
  app.post('/filter', beginFilter, readBody, answer('filter'), answerError('filter', metrics, log));
  app.post('/prioritize', readBody, answer('prioritize'), answerError('prioritize', metrics, log));
  app.post('/preempt', readBody, answer('preempt'), answerError('preempt', metrics, log));
  app
    .route('/explain')
    .get(async ({ query }, response) => {
      const { pod } = query;
      sendIndented(response, await explainer.ofPod(typeof pod === 'string' ? pod : null));
    })
    .post(readBody, ({ body }: Request, response: express.Response) => {
      sendIndented(response, explainer.ofBody(body));
    });
  app.use(({ method, path }, response) => {
    const expected = 'expected POST /filter, /prioritize or /preempt, or GET or POST /explain';
    sendText(response, 404, `${method} ${path.slice(0, 80)}: ${expected}`);
  });
  app.use(answerError('explain', metrics, log));
  return {
    handler: app,
    closeSockets() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function track(sockets: Set<Socket>, socket: Socket): void {
  if (sockets.has(socket)) return;
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
}

/**
 * Only a filter's answer has an Error field. For other verbs a failure is an HTTP error, which the scheduler logs. It
 * scores a failed prioritize as 0 and preempts nothing after a failed preempt.
 */
function answerError(verb: string, metrics: ExtenderMetrics, log: Logger): ErrorRequestHandler {
  // Express recognizes an error handler by its four parameters.
  return (error: unknown, _request, response, _next) => {
    const { malformed, status, message, close = false } = problemOf(error);
    metrics.calls.inc({ verb, outcome: malformed ? 'malformed' : 'error' });
    if (malformed) log.warn({ verb, message }, 'malformed extender call refused');
    else if (error instanceof NotNow) log.warn({ verb, message }, 'extender call refused');
    else log.error({ verb, err: error }, 'extender call failed');
    if (close) response.setHeader('Connection', 'close');
    if (verb === 'filter')
      send(response, 200, 'application/json', JSON.stringify(filterError(`plumbline: ${message}`)));
    else sendText(response, status, `plumbline: ${message}`);
  };
}

interface Problem {
  readonly malformed: boolean;
  readonly status: number;
  readonly message: string;
  /** Whether the caller must not use the connection again. Default false. */
  readonly close?: boolean;
}

function problemOf(error: unknown): Problem {
  // The caller must not reuse this connection to an inactive replica.
  if (error instanceof NotNow) return { malformed: false, status: 503, message: error.message, close: true };
  if (error instanceof JsonTooLarge) return { malformed: true, status: 413, message: error.message, close: true };
  if (error instanceof PlumblineError) {
    const malformed = error.code !== 'kube';
    return { malformed, status: malformed ? 400 : 502, message: error.message };
  }
  return (
    problemOfBody(error) ?? { malformed: false, status: 500, message: 'the extender failed to decide; see its log' }
  );
}

/** The errors of express.json. */
function problemOfBody(error: unknown): Problem | undefined {
  const { type, status = 500, message = '' } = error as { type?: unknown; status?: number; message?: string };
  if (typeof type !== 'string' || status >= 500) return undefined;
  if (type === 'entity.parse.failed') return { malformed: true, status, message: 'the body is not JSON' };
  const isTooLarge = type === 'entity.too.large';
  const text = isTooLarge ? `the body is larger than ${MAX_BODY_BYTES} bytes` : `the body cannot be read: ${message}`;
  return { malformed: true, status, message: text, close: true };
}

/** Sends a Content-Length, since kube-scheduler's client reuses a connection only if it knows where the answer ends. */
function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, 'text/plain; charset=utf-8', `${text}\n`);
}

function sendIndented(response: ServerResponse, object: object): void {
  send(response, 200, 'application/json', `${JSON.stringify(object, null, 2)}\n`);
}
