import { isObject, type Json, type JsonObject, type KubeObject } from '../objects.ts';
import { ApiError } from './errors.ts';

/** A webhook's decision; the form of its response is checked. */
export interface Verdict {
  readonly allowed: boolean;
  /** The decoded operations, if there is a patch. */
  readonly patch?: Json;
  readonly warnings: readonly string[];
  readonly status: JsonObject | undefined;
}

const REVIEW = 'admission.k8s.io/v1, Kind=AdmissionReview';

/**
 * Parses an AdmissionReview v1 response as strictly as the API server.
 * @param mutating false for validating webhooks, which must not patch
 * @throws Error if the uid differs, the kind is wrong, or only one of patch and patchType is present
 */
export function readVerdict(answer: Json, uid: string, mutating: boolean): Verdict {
  if (!isObject(answer) || !isObject(answer.response)) throw invalidAnswer('webhook response was absent');
  const { response } = answer;
  if (response.uid !== uid) throw invalidAnswer(`expected response.uid="${uid}", got ${JSON.stringify(response.uid)}`);
  if (answer.apiVersion !== 'admission.k8s.io/v1' || answer.kind !== 'AdmissionReview') {
    throw invalidAnswer(
      `expected webhook response of ${REVIEW}, got ${String(answer.apiVersion)}, Kind=${String(answer.kind)}`,
    );
  }
  if (typeof response.allowed !== 'boolean') throw invalidAnswer('response.allowed must be true or false');
  const { patch, patchType } = response;
  const hasPatch = typeof patch === 'string' && patch !== '';
  if (!mutating && hasPatch)
    throw invalidAnswer('webhook returned response.patch, which a validating webhook must not');
  if (hasPatch && !patchType) throw invalidAnswer('webhook returned response.patch but not response.patchType');
  if (!hasPatch && patchType) throw invalidAnswer('webhook returned response.patchType but not response.patch');
  if (hasPatch && patchType !== 'JSONPatch') {
    throw invalidAnswer(`webhook returned invalid response.patchType of ${JSON.stringify(patchType)}`);
  }
  return {
    allowed: response.allowed,
    warnings: Array.isArray(response.warnings) ? response.warnings.map(String) : [],
    status: isObject(response.status) ? response.status : undefined,
    ...(hasPatch && { patch: decodePatch(patch) }),
  };
}

function decodePatch(patch: string): Json {
  try {
    return JSON.parse(Buffer.from(patch, 'base64').toString('utf8')) as Json;
  } catch (error) {
    // The call succeeded but its patch failed: the API server responds with 500 whatever the failure policy is.
    throw new ApiError(500, 'InternalError', `Internal error occurred: ${(error as Error).message}`, undefined, {
      cause: error,
    });
  }
}

function invalidAnswer(why: string): Error {
  return new Error(`received invalid webhook response: ${why}`);
}

/** The refusal for a webhook's `allowed: false`; its code is at least 400. */
export function denial(webhook: string, status: JsonObject | undefined): ApiError {
  const by = `admission webhook "${webhook}" denied the request`;
  const said = [status?.message, status?.reason].find((text) => typeof text === 'string' && text !== '');
  const code = Math.max(400, typeof status?.code === 'number' ? status.code : 0);
  const reason = typeof status?.reason === 'string' ? status.reason : code === 403 ? 'Forbidden' : '';
  return new ApiError(code, reason, said === undefined ? `${by} without explanation` : `${by}: ${String(said)}`);
}

/** A warning longer than this is cut if all warnings together exceed the second limit, in characters. */
const LONG_WARNING = 256;
const MUCH_WARNING = 4096;

/** The warnings for the client: complete if they are short together, else each cut. */
export function boundedWarnings(warnings: readonly string[]): string[] {
  const total = warnings.reduce((sum, text) => sum + text.length, 0);
  return total <= MUCH_WARNING ? [...warnings] : warnings.map((text) => text.slice(0, LONG_WARNING));
}

/** The form of an object for a webhook: without undefined fields. */
export const reviewed = (object: KubeObject | undefined): Json => (object ? structuredClone(object) : null);
