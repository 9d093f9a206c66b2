/** A JSON value that may occur in a report. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * The JSON merge patch (RFC 7386) that turns `from` into `to`, or undefined if they are equal. Lists are values: one
 * that differs is replaced completely. Members that `to` lacks are set to null, which removes them.
 */
export function createMergePatch(from: Json | undefined, to: Json): Json | undefined {
  if (!isObject(from) || !isObject(to)) return JSON.stringify(from) === JSON.stringify(to) ? undefined : to;
  const patch: Record<string, Json> = {};
  for (const [key, value] of Object.entries(to)) {
    if (value === undefined) continue;
    const change = createMergePatch(from[key], value);
    if (change !== undefined) patch[key] = change;
  }
  for (const key of Object.keys(from)) if (to[key] === undefined && from[key] !== undefined) patch[key] = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json | undefined } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
