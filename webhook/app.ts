import type { ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import type { Logger } from '../runtime/log.ts';
import { BodyError, createRequestBodies, type RequestBodies } from '../runtime/request-bodies.ts';
import type { WebhookMetrics } from './metrics.ts';
import { answerReview, encodeReview, type HttpAnswer, type Review, ReviewError } from './review/admission-review.ts';

/** The path of each kind of review. */
export const PATHS = {
  mutatePods: '/mutate-pods',
  routePods: '/route-pods',
  validatePods: '/validate-pods',
  mutateVmis: '/mutate-vmis',
  validateVms: '/validate-vms',
  require: '/require',
} as const;

export type Reviews = Readonly<Record<keyof typeof PATHS, Review>>;

/**
 * Bytes of the largest body. The API server accepts objects of up to 3 MiB, and the review of an update contains two.
 */
export const LARGEST_BODY = 7 * 1024 * 1024;

export interface WebhookAppOptions {
  readonly reviews: Reviews;
  /** Default: accepts bodies of up to LARGEST_BODY bytes. */
  readonly bodies?: RequestBodies;
  readonly metrics: WebhookMetrics;
  readonly log: Logger;
}

/** The webhook's routes. They pass bodies as bytes: the review decodes them and reports errors. */
export function createWebhookApp({ reviews, bodies: given, metrics, log }: WebhookAppOptions): Express {
  const bodies = given ?? createRequestBodies({ largest: LARGEST_BODY });
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');

  const reviewing = (name: keyof typeof PATHS): RequestHandler => {
    const review = reviews[name];
    const seconds = metrics.seconds.labels({ review: name });
    return async (request, response) => {
      const body = await bodies.read(request);
      try {
        const begun = performance.now();
        const answer = await answerReview(body.bytes, review);
        seconds.observe((performance.now() - begun) / 1000);
        metrics.reviews.inc({ review: name, outcome: answer.outcome });
        send(response, answer);
      } finally {
        body.release();
      }
    };
  };
  /** Express recognizes an error handler by its four parameters. */
  const refusing =
    (name: string): ErrorRequestHandler =>
    (error: unknown, _request, response, _next) => {
      const { status, message } = problem(error);
      // The rest of a refused body would precede the next request on this connection.
      if (error instanceof BodyError) response.setHeader('connection', 'close');
      metrics.reviews.inc({ review: name, outcome: status < 500 ? 'malformed' : 'failed' });
      if (status < 500) log.warn({ status, message }, 'request refused');
      else log.error({ err: error }, 'review failed');
      const body = JSON.stringify(encodeReview('', { allowed: false, code: status, message }));
      send(response, { status, body });
    };

  for (const [name, path] of Object.entries(PATHS) as [keyof typeof PATHS, string][]) {
    app.post(path, reviewing(name), refusing(name));
  }
  app.use(unknown, refusing('none'));
  return app;
}

const unknown: RequestHandler = ({ method, path }, _response, next) => {
  const known = Object.values(PATHS).map((one) => `POST ${one}`);
  next(new ReviewError(404, `${method} ${path.slice(0, 80)}: this webhook answers ${known.join(', ')}`));
};

function send(response: ServerResponse, { status, body }: HttpAnswer): void {
  const length = Buffer.byteLength(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length });
  // A text with one byte per character is ASCII, which Node.js encodes faster as Latin-1.
  response.end(body, length === body.length ? 'latin1' : 'utf8');
}

/** Except for a malformed request, the caller only learns that the review failed. */
function problem(error: unknown): { status: number; message: string } {
  if (error instanceof ReviewError || error instanceof BodyError) return error;
  return { status: 500, message: 'the webhook failed to decide; see its log' };
}
