import * as z from 'zod';
import { MAX_NAME_CHARACTERS, name, truncated, word } from '../../kube/bounds.ts';
import { cut, issuesText, PlumblineError } from '../../model/errors.ts';

/** The fields that are read. Source: k8s.io/api/admission/v1/types.go. */
const request = z.object({
  uid: name.min(1),
  kind: z.object({ group: name, version: word, kind: word }),
  operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
  subResource: word.optional(),
  namespace: word.optional(),
  name: name.optional(),
  dryRun: z.boolean().optional(),
  // The API server does not limit it.
  userInfo: z.object({ username: truncated(MAX_NAME_CHARACTERS).optional() }).optional(),
  object: z.unknown(),
  oldObject: z.unknown().optional(),
});

const review = z.object({ apiVersion: z.literal('admission.k8s.io/v1'), kind: z.literal('AdmissionReview'), request });

export type AdmissionRequest = z.infer<typeof request>;

/** Decides one kind of request. An exception becomes a failure (500), never part of a patch. */
export type Review = (request: AdmissionRequest) => Promise<AdmissionAnswer>;

/** The response has an HTTP error status and the form of an AdmissionReview. */
export class ReviewError extends PlumblineError {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super('admission-review', message, options);
    this.status = status;
  }
}

export function outcomeOf(answer: AdmissionAnswer): 'patched' | 'unchanged' | 'denied' {
  if (!answer.allowed) return 'denied';
  return answer.patch !== undefined && answer.patch.length > 0 ? 'patched' : 'unchanged';
}

/** @throws ReviewError (400) if the body is not an AdmissionReview v1 with a request */
export function decodeReview(body: unknown): AdmissionRequest {
  if (body === undefined) throw new ReviewError(400, 'the body is empty: expected an AdmissionReview');
  const { data, error } = review.safeParse(body);
  if (data) return data.request;
  throw new ReviewError(400, `the body is not an admission.k8s.io/v1 AdmissionReview: ${issuesText(error)}`);
}

/** The API server cuts warnings to 256 characters if they exceed 4,096 in total, so each is limited to that. */
const MAX_WARNING_CHARACTERS = 256;
const MAX_WARNINGS = 16;

/** The response, ready to be sent as JSON, with both `patch` and `patchType` or neither. */
export function encodeReview(uid: string, answer: AdmissionAnswer): object {
  const warnings = [...new Set(answer.warnings)]
    .slice(0, MAX_WARNINGS)
    .map((text) => cut(text, MAX_WARNING_CHARACTERS));
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

export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  /** Absent if `op` is remove. */
  readonly value?: unknown;
}

interface RefusedAnswer {
  readonly allowed: false;
  readonly code: number;
  readonly message: string;
  readonly warnings?: readonly string[];
}

/** The result of a review. Without a patch the object is admitted unchanged. */
export type AdmissionAnswer =
  | { readonly allowed: true; readonly patch?: readonly PatchOperation[]; readonly warnings?: readonly string[] }
  | RefusedAnswer;

const MAX_MESSAGE_CHARACTERS = 1024;

/** A refusal. `code` is an HTTP status; the message is cut to 1024 characters. */
export function refused(code: number, message: string, warnings: readonly string[] = []): RefusedAnswer {
  const text = cut(`plumbline: ${message}`, MAX_MESSAGE_CHARACTERS);
  return { allowed: false, code, message: text, ...(warnings.length === 0 ? {} : { warnings }) };
}
