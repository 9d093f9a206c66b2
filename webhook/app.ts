import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Logger } from '../runtime/log.ts';
import { type AdmissionAnswer, decodeReview, encodeReview, type Review, ReviewError } from './admission-review.ts';
import { readBody } from './body.ts';
import type { Outcome, WebhookMetrics } from './metrics.ts';

/** Where each kind of review is answered. */
export const PATHS = {
  mutatePods: '/mutate-pods',
  validatePods: '/validate-pods',
  validateVms: '/validate-vms',
} as const;

export type Reviews = Readonly<Record<keyof typeof PATHS, Review>>;

export interface WebhookAppOptions {
  readonly reviews: Reviews;
  readonly metrics: WebhookMetrics;
  readonly log: Logger;
}

/** An HTTP answer: every one, errors included, is an AdmissionReview. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * Answers one body: decodes, decides, encodes.
 * @throws ReviewError if the body is no AdmissionReview; whatever the review throws
 */
export async function answerReview(body: Uint8Array, review: Review): Promise<HttpAnswer & { outcome: Outcome }> {
  const request = decodeReview(body);
  const answer = await review(request);
  return { status: 200, body: JSON.stringify(encodeReview(request.uid, answer)), outcome: outcomeOf(answer) };
}

/** The webhook's routes. There are three, so a table does what a framework would, at a fraction of the time. */
export function createWebhookApp({ reviews, metrics, log }: WebhookAppOptions): RequestListener {
  const routes = new Map(
    Object.entries(PATHS).map(([name, path]) => [
      path as string,
      { name, review: reviews[name as keyof typeof PATHS] },
    ]),
  );

  const handle = async (request: IncomingMessage): Promise<HttpAnswer> => {
    const path = request.url?.split('?', 1)[0] ?? '';
    const route = routes.get(path);
    try {
      if (route === undefined || request.method !== 'POST') {
        const known = [...routes.keys()].map((one) => `POST ${one}`).join(', ');
        throw new ReviewError(404, `${request.method} ${path}: this webhook answers ${known}`);
      }
      const body = await readBody(request);
      const begun = performance.now();
      const answer = await answerReview(body, route.review);
      metrics.seconds.observe({ review: route.name }, (performance.now() - begun) / 1000);
      metrics.reviews.inc({ review: route.name, outcome: answer.outcome });
      return answer;
    } catch (error) {
      const { status, message } = problem(error);
      metrics.reviews.inc({ review: route?.name ?? 'none', outcome: status < 500 ? 'malformed' : 'failed' });
      if (status < 500) log.warn({ status, message }, 'refused a request');
      else log.error({ err: error }, 'a review failed');
      return { status, body: JSON.stringify(encodeReview('', { allowed: false, code: status, message })) };
    }
  };

  return (request, response) => void handle(request).then((answer) => send(response, answer));
}

function send(response: ServerResponse, { status, body }: HttpAnswer): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** Of anything but a malformed request the caller learns only that it failed. */
function problem(error: unknown): { status: number; message: string } {
  if (error instanceof ReviewError) return error;
  return { status: 500, message: 'the webhook failed to decide; its log says why' };
}

function outcomeOf(answer: AdmissionAnswer): Outcome {
  if (!answer.allowed) return 'denied';
  return answer.patch !== undefined && answer.patch.length > 0 ? 'patched' : 'unchanged';
}
