import { isObject, type Json, type JsonObject } from '../objects.ts';
import { badRequest } from './errors.ts';

/**
 * Lists that a strategic merge patch of the built-in resources merges item by item. All other fields are handled as in
 * a merge patch. The keys are from the patchMergeKey tags of k8s.io/api; a field name refers to the same list in every
 * served type.
 */
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

/**
 * Merges `patch` into `target` and returns the result; does not change `target`. Lists of texts are replaced, and the
 * directives about the order of lists and about keys to keep are ignored: no client here depends on them.
 * @throws ApiError 400 for an unknown `$patch` directive or an item without its merge key
 */
export function strategicMerge(target: JsonObject, patch: JsonObject): JsonObject {
  if (patch.$patch === 'replace') return without(patch, '$patch');
  if (patch.$patch === 'delete') return {};
  if (patch.$patch !== undefined) throw badRequest(`unknown patch directive: ${String(patch.$patch)}`);
  const merged = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === undefined || value === null) delete merged[key];
    else merged[key] = mergeField(key, merged[key], value);
  }
  return merged;
}

function mergeField(key: string, old: Json | undefined, patch: Json): Json {
  if (isObject(patch)) return strategicMerge(isObject(old) ? old : {}, patch);
  if (!Array.isArray(patch) || MERGE_KEYS[key] === undefined || !patch.every(isObject)) return patch;
  return mergeItems(key, Array.isArray(old) ? old : [], patch);
}

function mergeItems(list: string, old: Json[], patches: JsonObject[]): Json[] {
  if (patches.some((patch) => patch.$patch === 'replace')) return patches.filter((patch) => patch.$patch === undefined);
  const items = [...old];
  for (const patch of patches) {
    const key = keyOf(list, patch);
    if (key === undefined) {
      throw badRequest(`map: ${JSON.stringify(patch)} does not contain declared merge key: ${MERGE_KEYS[list]?.[0]}`);
    }
    const index = items.findIndex((item) => isObject(item) && keyOf(list, item) === key);
    const item = items[index];
    if (patch.$patch === 'delete') {
      if (index >= 0) items.splice(index, 1);
    } else if (index < 0 || !isObject(item)) {
      items.push(strategicMerge({}, patch));
    } else {
      items[index] = strategicMerge(item, patch);
    }
  }
  return items;
}

function keyOf(list: string, item: JsonObject): Json | undefined {
  for (const name of MERGE_KEYS[list] ?? []) if (item[name] !== undefined) return item[name];
  return undefined;
}

function without(object: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}
