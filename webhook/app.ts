import express, { type ErrorRequestHandler, type Express } from 'express';
import type { Logger } from '../runtime/log.ts';
import {
  type AdmissionAnswer,
  type AdmissionRequest,
  decodeReview,
  encodeReview,
  ReviewError,
} from './admission-review.ts';
import type { Outcome, WebhookMetrics } from './metrics.ts';

/**
 * Largest body in bytes. The API server takes objects of up to 3 MiB and a review of an update carries two of them.
 */
export const LARGEST_BODY = 7 * 1024 * 1024;

export const MUTATE_PODS_PATH = '/mutate-pods';

export interface WebhookAppOptions {
  /** Decides one request. What it throws is answered as a failure (500), never as half a patch. */
  readonly reviewPod: (request: AdmissionRequest) => Promise<AdmissionAnswer>;
  readonly metrics: WebhookMetrics;
  readonly log: Logger;
}

/** The webhook's routes. Every answer, errors included, is an AdmissionReview. */
export function createWebhookApp({ reviewPod, metrics, log }: WebhookAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');

  app.post(MUTATE_PODS_PATH, express.raw({ type: () => true, limit: LARGEST_BODY }), async (request, response) => {
    const observe = metrics.seconds.startTimer();
    const admission = decodeReview(request.body);
    const answer = await reviewPod(admission);
    metrics.reviews.inc({ outcome: outcomeOf(answer) });
    observe();
    response.json(encodeReview(admission.uid, answer));
  });

  app.use((request, _response, next) => {
    next(new ReviewError(404, `${request.method} ${request.path}: this webhook answers POST ${MUTATE_PODS_PATH}`));
  });
  app.use(answerError(metrics, log));
  return app;
}

function answerError(metrics: WebhookMetrics, log: Logger): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const { status, message } = problem(error);
    metrics.reviews.inc({ outcome: status < 500 ? 'malformed' : 'failed' });
    if (status < 500) log.warn({ status, message }, 'refused a request');
    else log.error({ err: error }, 'a review failed');
    response.status(status).json(encodeReview('', { allowed: false, code: status, message }));
  };
}

/** body-parser's errors carry the status to answer with; of anything else the caller learns only that it failed. */
function problem(error: unknown): { status: number; message: string } {
  if (error instanceof ReviewError) return error;
  const status = error instanceof Error && 'status' in error ? Number(error.status) : 500;
  if (status === 413) return { status, message: `the body is larger than ${LARGEST_BODY} bytes` };
  if (status >= 400 && status < 500) return { status, message: (error as Error).message };
  return { status: 500, message: 'the webhook failed to decide; its log says why' };
}

function outcomeOf(answer: AdmissionAnswer): Outcome {
  if (!answer.allowed) return 'denied';
  return answer.patch !== undefined && answer.patch.length > 0 ? 'patched' : 'unchanged';
}
