import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express';
import { JsonBodies } from '../runtime/json-bodies.ts';
import { BodyError } from '../runtime/json-bounds.ts';
import { metricsOf, type Registry } from '../runtime/metrics.ts';
import { decodeReview, encodeReview, outcomeOf, type Review, ReviewError } from './review/admission-review.ts';
import type { WebhookLogger } from './telemetry/log-messages.ts';

const PATHS = {
  mutatePods: '/mutate-pods',
  routePods: '/route-pods',
  validatePods: '/validate-pods',
  mutateVmis: '/mutate-vmis',
  validateVms: '/validate-vms',
  require: '/require',
} as const;

type Reviews = Readonly<Record<keyof typeof PATHS, Review>>;

/** The API server accepts objects of up to 3 MiB, and the review of an update contains two. */
const MAX_BODY_BYTES = 7 * 1024 * 1024;

interface WebhookAppOptions {
  readonly reviews: Reviews;
  readonly metrics: WebhookMetrics;
  readonly log: WebhookLogger;
}

export function createWebhookApp({ reviews, metrics, log }: WebhookAppOptions) {
  const bodies = new JsonBodies({ maxBodyBytes: MAX_BODY_BYTES });
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');

  const reviewing = (name: keyof typeof PATHS): RequestHandler =>
    bodies.handler(async ({ body }, response) => {
      const observe = metrics.seconds.startTimer({ review: name });
      const request = decodeReview(body);
      const answer = await reviews[name](request);
      response.json(encodeReview(request.uid, answer));
      observe();
      metrics.reviews.inc({ review: name, outcome: outcomeOf(answer) });
    });
  /** Express recognizes an error handler by its four parameters. */
  const refusing =
    (name: string): ErrorRequestHandler =>
    (error: unknown, _request, response, _next) => {
      const isKnown = error instanceof ReviewError || error instanceof BodyError;
      // Except for a malformed request, the caller only learns that the review failed.
      const failed = { status: 500, message: 'the webhook failed to decide; see its log' };
      const { status, message: reason } = isKnown ? error : failed;
      // The rest of a body that was not read would precede the next request on this connection.
      if (error instanceof BodyError && error.status !== 400) response.setHeader('connection', 'close');
      metrics.reviews.inc({ review: name, outcome: status < 500 ? 'malformed' : 'failed' });
      if (status < 500) log.warn({ status, reason }, 'request refused');
      else log.error({ err: error }, 'review failed');
      response.status(status).json(encodeReview('', { allowed: false, code: status, message: reason }));
    };

  for (const [name, path] of Object.entries(PATHS) as [keyof typeof PATHS, string][])
    app.post(path, reviewing(name), refusing(name));
  const endpoints = Object.values(PATHS).map((path) => `POST ${path}`);
  app.use(({ method, path }: Request) => {
    throw new ReviewError(404, `${method} ${path.slice(0, 80)}: this webhook answers ${endpoints.join(', ')}`);
  }, refusing('none'));
  return { handler: app, bodies };
}

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

export function createWebhookMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricsOf(registry, 'plumbline_webhook');
  return {
    reviews: counter(
      'reviews_total',
      'Admission reviews by kind (mutatePods, routePods, validatePods, mutateVmis, validateVms, require, none) and outcome',
      ['review', 'outcome'],
    ),
    quarantinedReports: gauge(
      'quarantined_reports',
      'Node reports that are ignored because they contradict themselves, their Node or the other nodes',
    ),
    required: gauge(
      'required',
      '1 while the API server calls this webhook, 0 until the first call succeeds or while it is switched off',
    ),
    seconds: histogram(
      'review_seconds',
      'Seconds from the request body to the answer, look-ups included',
      [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 3],
      ['review'],
    ),
  };
}
