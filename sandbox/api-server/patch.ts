import jsonPatch, { type Operation } from 'fast-json-patch';
import { applyMergePatch } from '../../model/json.ts';
import { isRecord, type JsonRecord, type JsonValue, type KubeObject } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';
import { ApiError, badRequest, unsupportedMediaType } from './errors.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

/** Into a new object. Server-side apply is a merge without field ownership: it never conflicts, and omitted fields stay. */
export function applyPatch(type: ResourceType, current: KubeObject, format: string, patch: JsonValue): KubeObject {
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

export function applyJsonPatch(current: KubeObject, patch: JsonValue): KubeObject {
  if (!Array.isArray(patch) || !patch.every(isRecord)) {
    throw badRequest('error decoding patch: a JSON patch is a list of operations');
  }
  try {
    return jsonPatch.applyPatch(structuredClone(current), patch as unknown as Operation[], true).newDocument;
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    const why = `the server rejected our request due to an error in our request: ${reason}`;
    throw new ApiError(422, 'Invalid', why, undefined, { cause: error });
  }
}

function objectPatch(patch: JsonValue) {
  if (!isRecord(patch)) throw badRequest('error decoding patch: it must be an object');
  return patch;
}

/** Lists that a strategic merge patch merges by key, from the patchMergeKey tags of k8s.io/api. */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  addresses: ['type'],
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  ephemeralContainers: ['name'],
  hostAliases: ['ip'],
  imagePullSecrets: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  podIPs: ['ip'],
  ports: ['containerPort', 'port'],
  resourceClaims: ['name'],
  secrets: ['name'],
  topologySpreadConstraints: ['topologyKey'],
  volumeDevices: ['devicePath'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
  webhooks: ['name'],
};

/** Into a new object. `$patch: delete` is for items of lists; directives about order and keys to keep are ignored. */
function strategicMerge(target: JsonRecord, patch: JsonRecord): JsonRecord {
  if (patch.$patch !== undefined) throw badRequest(`unknown patch directive: ${String(patch.$patch)}`);
  const merged = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === undefined || value === null) delete merged[key];
    else merged[key] = mergeField(key, merged[key], value);
  }
  return merged;
}

function mergeField(key: string, old: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (isRecord(patch)) return strategicMerge(isRecord(old) ? old : {}, patch);
  if (!Array.isArray(patch) || MERGE_KEYS[key] === undefined || !patch.every(isRecord)) return patch;
  return mergeItems(key, Array.isArray(old) ? old : [], patch);
}

const keyOf = (list: string, item: JsonRecord) =>
  MERGE_KEYS[list]?.map((name) => item[name]).find((value) => value !== undefined);

function mergeItems(list: string, old: JsonValue[], patches: JsonRecord[]): JsonValue[] {
  const items = [...old];
  for (const patch of patches) {
    const key = keyOf(list, patch);
    if (key === undefined) {
      throw badRequest(`map: ${JSON.stringify(patch)} does not contain declared merge key: ${MERGE_KEYS[list]?.[0]}`);
    }
    const index = items.findIndex((item) => isRecord(item) && keyOf(list, item) === key);
    const at = index < 0 ? items.length : index;
    if (patch.$patch === 'delete') items.splice(at, 1);
    else items[at] = strategicMerge((items[at] ?? {}) as JsonRecord, patch);
  }
  return items;
}
