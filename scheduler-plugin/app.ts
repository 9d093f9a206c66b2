import express, { type ErrorRequestHandler, type Express, type Response } from 'express';
import { PlumblineError } from '../model/errors.ts';
import type { Logger } from '../runtime/log.ts';
import { type Extender, NotSynced } from './extender.ts';
import type { ExtenderMetrics } from './metrics.ts';
import { decodeArgs, type ExtenderArgs, encodeFilterError, encodeFilterVerdict, encodePriorities } from './wire.ts';

/** Largest body in bytes: a pod of 3 MiB and 15,000 node names of 63 characters. */
export const LARGEST_BODY = 5 * 1024 * 1024;

type Verb = 'filter' | 'prioritize';

export interface ExtenderAppOptions {
  readonly extender: Extender;
  readonly metrics: ExtenderMetrics;
  readonly log: Logger;
}

/**
 * The extender's routes. Whatever goes wrong is answered with HTTP 200 and the protocol's Error: with any other status
 * the scheduler's message would say nothing of the cause. No failure is ever answered with "all nodes fit".
 */
export function createExtenderApp({ extender, metrics, log }: ExtenderAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const body = express.raw({ type: () => true, limit: LARGEST_BODY });

  const serve = (verb: Verb, answer: (args: ExtenderArgs) => string) => {
    app.post(`/${verb}`, body, (request, response) => {
      const observe = metrics.seconds.startTimer({ verb });
      response.locals['verb'] = verb;
      sendJson(response, answer(decodeArgs(request.body)));
      metrics.calls.inc({ verb, outcome: 'ok' });
      observe();
    });
  };
  serve('filter', (args) => encodeFilterVerdict(extender.filter(args)));
  serve('prioritize', (args) => encodePriorities(extender.prioritize(args)));

  app.use((request, response) => {
    response
      .status(404)
      .type('text/plain')
      .send(`${request.method} ${request.path}: expected POST /filter or /prioritize\n`);
  });
  app.use(answerError(metrics, log));
  return app;
}

/**
 * Prioritize has no Error in its answer, so there a failure is an HTTP error, which the scheduler logs and scores as 0.
 */
function answerError(metrics: ExtenderMetrics, log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const verb = request.path === '/prioritize' ? 'prioritize' : 'filter';
    const { malformed, status, message } = problem(error);
    metrics.calls.inc({ verb, outcome: malformed ? 'malformed' : 'error' });
    if (malformed) log.warn({ verb, message }, 'refused a call');
    else log.error({ verb, err: error }, 'a call failed');
    if (verb === 'filter') sendJson(response, encodeFilterError(`plumbline: ${message}`));
    else response.status(status).type('text/plain').send(`plumbline: ${message}\n`);
  };
}

function problem(error: unknown): { malformed: boolean; status: number; message: string } {
  if (error instanceof PlumblineError) return { malformed: true, status: 400, message: error.message };
  const status = error instanceof Error && 'status' in error ? Number(error.status) : 500;
  if (status === 413) return { malformed: true, status, message: `the body is larger than ${LARGEST_BODY} bytes` };
  if (status >= 400 && status < 500) return { malformed: true, status, message: (error as Error).message };
  if (error instanceof NotSynced) return { malformed: false, status: 503, message: error.message };
  return { malformed: false, status: 500, message: 'the extender failed to decide; its log says why' };
}

function sendJson(response: Response, text: string): void {
  const bytes = Buffer.from(text);
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Content-Length', bytes.length);
  response.end(bytes);
}
