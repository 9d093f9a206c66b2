import type { Socket } from 'node:net';
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express';
import { PlumblineError } from '../model/errors.ts';
import type { Logger } from '../runtime/log.ts';
import type { Explainer } from './explain.ts';
import { type Extender, NotNow } from './extender.ts';
import type { ExtenderMetrics } from './metrics.ts';
import { answerPreempt } from './preempt.ts';
import { encodeFilterError, encodeFilterReply, encodePriorities } from './reply.ts';
import type { UnpredictablePolicy } from './verdict.ts';
import { ArgsDecoder } from './wire.ts';

/** Largest body in bytes: a pod of 3 MiB and 15,000 node names of 63 characters. */
export const LARGEST_BODY = 5 * 1024 * 1024;

type Verb = 'filter' | 'prioritize' | 'preempt';

export interface ExtenderAppOptions {
  readonly extender: Extender;
  readonly explainer: Explainer;
  readonly unpredictable: UnpredictablePolicy;
  readonly metrics: ExtenderMetrics;
  readonly log: Logger;
}

export interface ExtenderApp {
  readonly handler: Express;
  /** Ends connections, so that callers look for the active replica anew. */
  closeSockets(): void;
}

/**
 * The extender's routes. Whatever goes wrong is answered with HTTP 200 and the protocol's Error: with any other status
 * the scheduler's message would say nothing of the cause. No failure is ever answered with "all nodes fit".
 */
export function createExtenderApp(options: ExtenderAppOptions): ExtenderApp {
  const { extender, explainer, unpredictable, metrics, log } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const body = express.raw({ type: () => true, limit: LARGEST_BODY });
  const decoder = new ArgsDecoder(extender.state.fleet.names);
  const sockets = new Set<Socket>();
  /** Filter calls whose bodies are coming in. */
  let waiting = 0;

  const track = ({ socket }: Request) => {
    if (sockets.has(socket)) return;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  const count = (request: Request, response: Response) => {
    waiting++;
    let counted = true;
    const end = () => {
      if (counted) waiting--;
      counted = false;
    };
    response.once('close', end);
    response.locals['arrived'] = end;
    track(request);
  };

  const serve = (verb: Verb, answer: (body: unknown) => Buffer) => {
    app.post(
      `/${verb}`,
      (request, response, next) => {
        count(request, response);
        next();
      },
      body,
      (request, response) => {
        (response.locals['arrived'] as () => void)();
        const observe = metrics.seconds.startTimer({ verb });
        const reply = answer(request.body);
        // Asked again after the work: the process may have been stopped in the midst of it.
        extender.assertActive();
        send(response, reply);
        metrics.calls.inc({ verb, outcome: 'ok' });
        observe();
      },
    );
  };
  serve('filter', (bytes) => {
    const args = decoder.decode(bytes);
    return encodeFilterReply(extender.filter(args, waiting), args.nodes);
  });
  serve('prioritize', (bytes) => encodePriorities(extender.prioritize(decoder.decode(bytes))));
  serve('preempt', (bytes) => answerPreempt(extender, unpredictable, bytes));

  const explain = async (request: Request, response: Response) => {
    send(response, Buffer.from(`${JSON.stringify(await explainer.answer(request), null, 2)}\n`));
  };
  app.get('/explain', explain);
  app.post('/explain', body, explain);

  app.use((request, response) => {
    const expected = 'expected POST /filter, /prioritize or /preempt, or GET or POST /explain';
    response.status(404).type('text/plain').send(`${request.method} ${request.path}: ${expected}\n`);
  });
  app.use(answerError(metrics, log));
  return {
    handler: app,
    closeSockets() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * Only a filter's answer has an Error; elsewhere a failure is an HTTP error, which the scheduler logs. It scores a failed
 * prioritize as 0 and preempts nothing after a failed preempt.
 */
function answerError(metrics: ExtenderMetrics, log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const verb = request.path.slice(1);
    const { malformed, status, message } = problem(error);
    metrics.calls.inc({ verb, outcome: malformed ? 'malformed' : 'error' });
    if (malformed) log.warn({ verb, message }, 'refused a call');
    else if (error instanceof NotNow) log.warn({ verb, message }, 'gave no verdict');
    else log.error({ verb, err: error }, 'a call failed');
    // Whoever is not the active replica is not to be asked again over this connection.
    if (error instanceof NotNow || status === 413) response.setHeader('Connection', 'close');
    if (verb === 'filter') send(response, encodeFilterError(`plumbline: ${message}`));
    else response.status(status).type('text/plain').send(`plumbline: ${message}\n`);
  };
}

function problem(error: unknown): { malformed: boolean; status: number; message: string } {
  if (error instanceof PlumblineError) {
    const isOurs = error.code !== 'kube';
    return { malformed: isOurs, status: isOurs ? 400 : 502, message: error.message };
  }
  const status = error instanceof Error && 'status' in error ? Number(error.status) : 500;
  if (status === 413) return { malformed: true, status, message: `the body is larger than ${LARGEST_BODY} bytes` };
  if (status >= 400 && status < 500) return { malformed: true, status, message: (error as Error).message };
  if (error instanceof NotNow) return { malformed: false, status: 503, message: error.message };
  return { malformed: false, status: 500, message: 'the extender failed to decide; its log says why' };
}

function send(response: Response, bytes: Buffer): void {
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Content-Length', bytes.length);
  response.end(bytes);
}
