import { isObject, type Json } from '../objects.ts';

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
