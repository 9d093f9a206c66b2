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
const MERGED_PRIMITIVES = new Set(['finalizers']);
const ORDER = '$setElementOrder/';
const DELETE_PRIMITIVES = '$deleteFromPrimitiveList/';

/**
 * Merges `patch` into `target` and returns the result; does not change `target`.
 * @throws ApiError 400 for an unknown `$patch` directive or an item without its merge key
 */
export function strategicMerge(target: JsonObject, patch: JsonObject): JsonObject {
  if (patch.$patch === 'replace') return without(patch, '$patch');
  if (patch.$patch === 'delete') return {};
  if (patch.$patch !== undefined) throw badRequest(`unknown patch directive: ${String(patch.$patch)}`);
  const merged = { ...target };
  if (Array.isArray(patch.$retainKeys)) {
    for (const key of Object.keys(merged)) if (!patch.$retainKeys.includes(key)) delete merged[key];
  }
  mergeFields(merged, patch);
  for (const [key, value] of Object.entries(patch)) {
    const list = key.startsWith(ORDER) ? key.slice(ORDER.length) : '';
    const items = merged[list];
    if (Array.isArray(items)) merged[list] = ordered(list, items, asList(value));
  }
  return merged;
}

function mergeFields(merged: JsonObject, patch: JsonObject): void {
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE_PRIMITIVES)) {
      const list = key.slice(DELETE_PRIMITIVES.length);
      merged[list] = asList(merged[list]).filter((item) => !asList(value).includes(item));
    } else if (!key.startsWith('$')) {
      if (value === undefined || value === null) delete merged[key];
      else merged[key] = mergeField(key, merged[key], value);
    }
  }
}

function mergeField(key: string, old: Json | undefined, patch: Json): Json {
  if (isObject(patch)) return strategicMerge(isObject(old) ? old : {}, patch);
  if (!Array.isArray(patch)) return patch;
  if (MERGED_PRIMITIVES.has(key)) return [...new Set([...asList(old), ...patch])];
  if (MERGE_KEYS[key] === undefined || !patch.every(isObject)) return patch;
  return mergeItems(key, asList(old), patch);
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

/** The items in the given order; items that it does not contain follow in their previous order. */
function ordered(list: string, items: Json[], order: Json[]): Json[] {
  const keys = order.map((entry) => (isObject(entry) ? keyOf(list, entry) : entry));
  const rank = (item: Json) => {
    const index = keys.indexOf((isObject(item) ? keyOf(list, item) : item) ?? null);
    return index < 0 ? keys.length : index;
  };
  return items
    .map((item, position) => ({ item, position, rank: rank(item) }))
    .sort((a, b) => a.rank - b.rank || a.position - b.position)
    .map(({ item }) => item);
}

function without(object: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

const asList = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
