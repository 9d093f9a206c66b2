import type { ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { PlumblineError } from '../../model/errors.ts';
import type { UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { createBufferPool, type Lent, lentFree } from '../../runtime/buffer-pool.ts';
import type { Logger } from '../../runtime/log.ts';
import { BodyError, createRequestBodies, type RequestBodies } from '../../runtime/request-bodies.ts';
import type { Explainer } from '../extender/explain.ts';
import { type Extender, NotNow } from '../extender/extender.ts';
import { answerPreempt } from '../extender/preempt.ts';
import { encodeFilterError, encodeFilterReply, encodePriorities } from '../extender/reply.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';
import { pooledSink } from '../wire/pooled-sink.ts';
import { ArgsDecoder } from '../wire/wire.ts';

type Verb = 'filter' | 'prioritize' | 'preempt';

/** Bytes of the largest body: a pod of 3 MiB and 15,000 node names of 63 characters. */
export const LARGEST_BODY = 5 * 1024 * 1024;

export interface ExtenderAppOptions {
  readonly extender: Extender;
  /** Default: bodies of up to LARGEST_BODY bytes. */
  readonly bodies?: RequestBodies;
  readonly explainer: Explainer;
  /** Awaited before each verdict. Default: nothing. */
  readonly called?: () => Promise<void>;
  readonly unpredictable: UnpredictablePolicy;
  readonly metrics: ExtenderMetrics;
  readonly log: Logger;
}

export interface ExtenderApp {
  readonly handler: Express;
}

/**
 * The extender's routes. Any error in a filter call is answered with HTTP 200 and the protocol's Error field: with
 * another status, the scheduler's message would not contain the cause. No error is ever answered with "all nodes fit".
 */
export function createExtenderApp(options: ExtenderAppOptions): ExtenderApp {
  const { extender, explainer, called, unpredictable, metrics, log } = options;
  const bodies = options.bodies ?? createRequestBodies({ largest: LARGEST_BODY });
  const decoder = new ArgsDecoder(extender.state.fleet.names);
  const pool = createBufferPool();
  /** Number of filter calls whose bodies are arriving. */
  let waiting = 0;

  const verbs: Readonly<Record<Verb, (body: Buffer) => Lent>> = {
    filter(body) {
      const args = decoder.decode(body);
      return encodeFilterReply(extender.filter(args, waiting), args.nodes, pool);
    },
    prioritize: (body) => lentFree(encodePriorities(extender.prioritize(decoder.decode(body)))),
    preempt: (body) => lentFree(answerPreempt(extender, unpredictable, body)),
  };

  const calling =
    (verb: Verb): RequestHandler =>
    async (request, response) => {
      const counts = verb === 'filter' ? 1 : 0;
      waiting += counts;
      const body = await bodies.read(request, pooledSink(pool, LARGEST_BODY)).finally(() => {
        waiting -= counts;
      });
      try {
        const observe = metrics.seconds.startTimer({ verb });
        await called?.();
        const reply = verbs[verb](body.bytes);
        // Check again after the work: the process may have been suspended in between.
        extender.assertActive();
        send(response, 200, 'application/json', reply);
        metrics.calls.inc({ verb, outcome: 'ok' });
        observe();
      } finally {
        body.release();
      }
    };

  const explainBody: RequestHandler = async (request, response) => {
    const body = await bodies.read(request, pooledSink(pool, LARGEST_BODY));
    try {
      send(response, 200, 'application/json', lentFree(written(explainer.ofBody(body.bytes))));
    } finally {
      body.release();
    }
  };

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  for (const verb of ['filter', 'prioritize', 'preempt'] as const) {
    app.post(`/${verb}`, calling(verb), answerError(verb, metrics, log));
  }
  app
    .route('/explain')
    .get(async ({ query }, response) => {
      const { pod } = query;
      const explained = await explainer.ofPod(typeof pod === 'string' ? pod : null);
      send(response, 200, 'application/json', lentFree(written(explained)));
    })
    .post(explainBody);
  app.use(({ method, path }, response) => {
    const expected = 'expected POST /filter, /prioritize or /preempt, or GET or POST /explain';
    sendText(response, 404, `${method} ${path.slice(0, 80)}: ${expected}`);
  });
  app.use(answerError('explain', metrics, log));
  return { handler: app };
}

/**
 * Only a filter's answer has an Error field. For other verbs a failure is an HTTP error, which the scheduler logs. It
 * scores a failed prioritize as 0 and preempts nothing after a failed preempt.
 */
function answerError(verb: string, metrics: ExtenderMetrics, log: Logger): ErrorRequestHandler {
  // Express recognizes an error handler by its four parameters.
  return (error: unknown, _request, response, _next) => {
    const { malformed, status, message } = problem(error);
    metrics.calls.inc({ verb, outcome: malformed ? 'malformed' : 'error' });
    if (malformed) log.warn({ verb, message }, 'malformed extender call refused');
    else if (error instanceof NotNow) log.warn({ verb, message }, 'extender call refused');
    else log.error({ verb, err: error }, 'extender call failed');
    if (error instanceof BodyError) response.setHeader('Connection', 'close');
    if (verb === 'filter')
      send(response, 200, 'application/json', lentFree(encodeFilterError(`plumbline: ${message}`)));
    else sendText(response, status, `plumbline: ${message}`);
  };
}

function problem(error: unknown): { malformed: boolean; status: number; message: string } {
  if (error instanceof BodyError) return { malformed: true, status: error.status, message: error.message };
  if (error instanceof PlumblineError) {
    const isOurs = error.code !== 'kube';
    return { malformed: isOurs, status: isOurs ? 400 : 502, message: error.message };
  }
  if (error instanceof NotNow) return { malformed: false, status: 503, message: error.message };
  return { malformed: false, status: 500, message: 'the extender failed to decide; see its log' };
}

/** Sends a Content-Length, since kube-scheduler's client reuses a connection only if it knows where the answer ends. */
function send(response: ServerResponse, status: number, type: string, { bytes, release }: Lent): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': bytes.length });
  response.end(bytes, release);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, 'text/plain; charset=utf-8', lentFree(Buffer.from(`${text}\n`)));
}

function written(object: object): Buffer {
  return Buffer.from(`${JSON.stringify(object, null, 2)}\n`);
}
