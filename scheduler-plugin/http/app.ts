import type { RequestListener, ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express';
import { PlumblineError } from '../../model/errors.ts';
import type { UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { JsonBodies } from '../../runtime/json-bodies.ts';
import { BodyError } from '../../runtime/json-bounds.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { filterError, filterResult, parseExtenderArgs } from '../extender/args.ts';
import type { Explainer } from '../extender/explain.ts';
import { type Extender, NotNow } from '../extender/extender.ts';
import { preempt } from '../extender/preempt.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';

/** Seconds without a refused call before the next one is logged, or that calls are answered again. */
const REFUSAL_LOG_SECONDS = 10;

/** Bytes of the largest body: a pod of 3 MiB and 15,000 node names of 63 characters. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;

interface ExtenderAppOptions extends Pick<ExtenderContext, 'metrics' | 'log'> {
  readonly extender: Extender;
  readonly explainer: Explainer;
  /** Called before each answer to kube-scheduler. */
  readonly called?: () => Promise<void>;
  readonly unpredictable: UnpredictablePolicy;
}

/** Any other status than 200 would hide the cause. No error is ever answered with "all nodes fit". */
export function createExtenderApp(options: ExtenderAppOptions) {
  const { extender, explainer, called, unpredictable, metrics, log } = options;
  const bodies = new JsonBodies({ maxBodyBytes: MAX_BODY_BYTES });
  const refusedCalls = new RefusedCalls(log);
  const arriving = new Set<Request>();

  const verbs: Readonly<Record<string, (body: unknown) => object>> = {
    filter(body) {
      const args = parseExtenderArgs(body);
      return filterResult(extender.filter(args, arriving.size), args.nodes);
    },
    prioritize: (body) => extender.prioritize(parseExtenderArgs(body)),
    preempt: (body) => preempt(extender, unpredictable, body),
  };

  const beginFilter: RequestHandler = (request, response, next) => {
    arriving.add(request);
    response.once('close', () => arriving.delete(request));
    next();
  };

  const answer = (verb: string, answerTo: (body: unknown) => object): RequestHandler =>
    bodies.handler(async (request, response) => {
      arriving.delete(request);
      const observe = metrics.seconds.startTimer({ verb });
      await called?.();
      const result = answerTo(request.body);
      // Check again after the work: the process may have been suspended in between.
      extender.assertActive();
      send(response, 200, 'application/json', JSON.stringify(result));
      metrics.calls.inc({ verb, outcome: 'ok' });
      refusedCalls.answered(verb);
      observe();
    });

  // A router without an app: the app would set the prototype of each request, which is slow and keeps its body for long.
  const router = express.Router();
  router.post('/filter', beginFilter);
  for (const [verb, answerTo] of Object.entries(verbs))
    router.post(`/${verb}`, answer(verb, answerTo), answerError(verb, refusedCalls, options));
  const explained = (response: Response, explanation: object) => {
    send(response, 200, 'application/json', `${JSON.stringify(explanation, null, 2)}\n`);
    refusedCalls.answered('explain');
  };
  router
    .route('/explain')
    .get(async ({ url }, response) => {
      const pods = new URLSearchParams(url.split('?')[1]).getAll('pod');
      explained(response, await explainer.ofPod(pods.length === 1 ? (pods[0] ?? null) : null));
    })
    .post(bodies.handler(async ({ body }, response) => explained(response, await explainer.ofBody(body))));
  router.use(({ method, url }, response) => {
    const expected = 'expected POST /filter, /prioritize or /preempt, or GET or POST /explain';
    sendText(response, 404, `${method} ${url.split('?')[0]?.slice(0, 80)}: ${expected}`);
  });
  router.use(answerError('explain', refusedCalls, options));
  // The last two handlers answer everything but a URL that cannot be parsed, and an error after the answer has begun.
  const handler: RequestListener = (request, response) =>
    router(request as Request, response as Response, () => response.destroy());
  return { handler, bodies };
}

/** Only a filter's answer has an Error field. A failed prioritize scores 0, a failed preempt preempts nothing. */
function answerError(
  verb: string,
  refusedCalls: RefusedCalls,
  { metrics, log }: Pick<ExtenderAppOptions, 'metrics' | 'log'>,
): ErrorRequestHandler {
  // Express recognizes an error handler by its four parameters.
  return (error: unknown, _request, response, _next) => {
    const { malformed, status, message } = problemOf(error);
    metrics.calls.inc({ verb, outcome: malformed ? 'malformed' : 'error' });
    if (malformed) log.warn({ verb, reason: message }, 'malformed extender call refused');
    else if (error instanceof NotNow) refusedCalls.refused(verb, message);
    else log.error({ verb, err: error }, 'extender call failed');
    // The rest of a body that was not read would precede the next request on this connection.
    if (error instanceof BodyError && error.status !== 400) response.setHeader('Connection', 'close');
    const text = `plumbline: ${message}`;
    if (verb === 'filter') send(response, 200, 'application/json', JSON.stringify(filterError(text)));
    else sendText(response, status, text);
  };
}

/** Logs refused calls, which the scheduler repeats: the first of a series, and that calls are answered again. */
class RefusedCalls {
  readonly #log: ExtenderLogger;
  /** In monotonic seconds, by verb. */
  readonly #series = new Map<string, { readonly firstAt: number; lastAt: number }>();

  constructor(log: ExtenderLogger) {
    this.#log = log;
  }

  refused(verb: string, reason: string): void {
    const now = monotonicSeconds();
    const series = this.#series.get(verb);
    if (series === undefined || now - series.lastAt >= REFUSAL_LOG_SECONDS)
      this.#log.warn({ verb, reason }, 'extender call refused');
    if (series === undefined) this.#series.set(verb, { firstAt: now, lastAt: now });
    else series.lastAt = now;
  }

  answered(verb: string): void {
    const series = this.#series.get(verb);
    if (series === undefined || monotonicSeconds() - series.lastAt < REFUSAL_LOG_SECONDS) return;
    this.#series.delete(verb);
    const lastedSeconds = Math.round(series.lastAt - series.firstAt);
    this.#log.info({ verb, warning: 'extender call refused', lastedSeconds }, 'recovered');
  }
}

function problemOf(error: unknown) {
  if (error instanceof NotNow) return { malformed: false, status: 503, message: error.message };
  if (error instanceof BodyError) return { malformed: true, status: error.status, message: error.message };
  if (error instanceof PlumblineError) {
    const malformed = error.code !== 'kube';
    return { malformed, status: malformed ? 400 : 502, message: error.message };
  }
  return { malformed: false, status: 500, message: 'the extender failed to decide; see its log' };
}

/** Sends a Content-Length, since kube-scheduler's client reuses a connection only if it knows where the answer ends. */
function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, 'text/plain; charset=utf-8', `${text}\n`);
}
