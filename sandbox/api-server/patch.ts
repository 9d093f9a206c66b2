import jsonPatch, { type Operation } from 'fast-json-patch';
import { isObject, type Json, type KubeObject } from '../objects.ts';
import { ApiError, badRequest, unsupportedMediaType } from './errors.ts';
import type { ResourceType } from './resource-types.ts';
import { strategicMerge } from './strategic-merge.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

/** Limit of the operations in one JSON patch, as in the API server. */
const MOST_OPERATIONS = 10_000;

/**
 * Applies a patch and returns the new object; does not change the current one.
 *
 * Server-side apply is a merge here. There is no field ownership, so an apply never conflicts, and a field that a later
 * apply omits stays.
 * @throws ApiError 400 if the body is not such a patch, 415 for a format that the resource does not support, 422 if a
 * JSON patch does not apply
 */
export function applyPatch(type: ResourceType, current: KubeObject, format: string, patch: Json): KubeObject {
  switch (format) {
    case JSON_PATCH:
      return applyJsonPatch(current, patch);
    case MERGE_PATCH:
      return applyMergePatch(current, objectPatch(patch)) as KubeObject;
    case APPLY_PATCH:
      return (type.custom ? applyMergePatch : strategicMerge)(current, objectPatch(patch)) as KubeObject;
    case STRATEGIC_MERGE_PATCH:
      if (!type.custom) return strategicMerge(current, objectPatch(patch)) as KubeObject;
      throw unsupportedMediaType(format, [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]);
    default:
      throw unsupportedMediaType(format, [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH]);
  }
}

/**
 * Applies a JSON patch (RFC 6902) completely or not at all.
 * @throws ApiError 400, 413 or 422
 */
export function applyJsonPatch(current: KubeObject, patch: Json): KubeObject {
  if (!Array.isArray(patch) || !patch.every(isObject)) {
    throw badRequest('error decoding patch: a JSON patch is a list of operations');
  }
  if (patch.length > MOST_OPERATIONS) {
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `The allowed maximum operations in a JSON patch is ${MOST_OPERATIONS}, got ${patch.length}`,
    );
  }
  try {
    return jsonPatch.applyPatch(structuredClone(current), patch as unknown as Operation[], true).newDocument;
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    throw new ApiError(
      422,
      'Invalid',
      `the server rejected our request due to an error in our request: ${reason}`,
      undefined,
      { cause: error },
    );
  }
}

function objectPatch(patch: Json) {
  if (!isObject(patch)) throw badRequest('error decoding patch: it must be an object');
  return patch;
}

/**
 * Applies a JSON merge patch (RFC 7386): objects merge, null removes, everything else replaces. Does not change the
 * target.
 */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined || value === null) delete merged[key];
    else merged[key] = applyMergePatch(merged[key], value);
  }
  return merged;
}
