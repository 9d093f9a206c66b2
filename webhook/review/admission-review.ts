import { isUtf8 } from 'node:buffer';
import * as z from 'zod';
import { asIs } from '../../kube/as-it-is.ts';
import { type AdmissionAnswer, issuesText, type PatchOperation } from '../../model/admission/answer.ts';
import { cut } from '../../model/brief.ts';
import { ParseError, PlumblineError } from '../../model/errors.ts';
import { assertBoundedJson } from '../../runtime/json-bounds.ts';

/**
 * AdmissionReview v1, as far as it is read and written here.
 * Source: k8s.io/api/admission/v1/types.go.
 */
const request = z.object({
  uid: z.string().min(1),
  kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
  operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
  subResource: z.string().optional(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  dryRun: z.boolean().optional(),
  userInfo: z.object({ username: z.string().optional() }).optional(),
  object: z.unknown(),
  oldObject: z.unknown().optional(),
});

const review = z.object({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request,
});

const isReview = asIs(review);

export type AdmissionRequest = z.infer<typeof request>;

/** Decides one kind of request. What it throws is answered as a failure (500), never as half a patch. */
export type Review = (request: AdmissionRequest) => Promise<AdmissionAnswer>;

/** A request that is no AdmissionReview v1: answered with an HTTP error status, in the form of an AdmissionReview. */
export class ReviewError extends PlumblineError {
  readonly status: number;

  /** @param status of the HTTP answer */
  constructor(status: number, message: string, options?: ErrorOptions) {
    super('admission-review', message, options);
    this.status = status;
  }
}

/** An HTTP answer: every one, errors included, is an AdmissionReview. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/** What a review that was answered ended in. */
export type ReviewOutcome = 'patched' | 'unchanged' | 'denied';

/**
 * Answers one body: decodes, decides, encodes.
 * @throws ReviewError if the body is no AdmissionReview; whatever the review throws
 */
export async function answerReview(body: Uint8Array, review: Review): Promise<HttpAnswer & { outcome: ReviewOutcome }> {
  const request = decodeReview(body);
  const answer = await review(request);
  return { status: 200, body: JSON.stringify(encodeReview(request.uid, answer)), outcome: outcomeOf(answer) };
}

function outcomeOf(answer: AdmissionAnswer): ReviewOutcome {
  if (!answer.allowed) return 'denied';
  return answer.patch !== undefined && answer.patch.length > 0 ? 'patched' : 'unchanged';
}

/**
 * @throws ReviewError (400) if the body is not JSON or not an AdmissionReview v1 with a request
 */
export function decodeReview(body: unknown): AdmissionRequest {
  if (!(body instanceof Uint8Array)) throw new ReviewError(400, 'the body is empty: expected an AdmissionReview');
  const parsed = parseJson(body);
  if (isReview(parsed)) return (parsed as z.infer<typeof review>).request;
  const result = review.safeParse(parsed);
  if (result.success) return result.data.request;
  throw new ReviewError(400, `the body is not an admission.k8s.io/v1 AdmissionReview: ${issuesText(result.error)}`);
}

/** The API server cuts warnings off at 256 characters once they pass 4,096 in all: keep each within that. */
const LONGEST_WARNING = 256;
const MOST_WARNINGS = 16;

/** The reply, ready to be sent as JSON: `patch` and `patchType` both or neither. */
export function encodeReview(uid: string, answer: AdmissionAnswer): object {
  const warnings = [...new Set(answer.warnings)].slice(0, MOST_WARNINGS).map((text) => cut(text, LONGEST_WARNING));
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: answer.allowed,
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(answer.allowed ? encodePatch(answer.patch) : { status: { code: answer.code, message: answer.message } }),
    },
  };
}

function encodePatch(patch: readonly PatchOperation[] | undefined): object {
  if (patch === undefined || patch.length === 0) return {};
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
}

function parseJson(body: Uint8Array): unknown {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  assertBoundedJson(bytes);
  try {
    if (!isUtf8(bytes)) throw new Error('it is not UTF-8');
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    const shown = new ParseError('the body', bytes.toString('utf8', 0, 60), 'it is not JSON');
    throw new ReviewError(400, shown.message, { cause: error });
  }
}
