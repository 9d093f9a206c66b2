export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a decoded value is an object, and neither a list nor null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The decoded value; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  return resultOrNone(() => JSON.parse(text));
}

export function resultOrNone<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** RFC 7386; undefined if they are equal. A list that differs is replaced; members that `to` lacks become null. */
export function createMergePatch(from: unknown, to: unknown): unknown {
  if (!isObject(from) || !isObject(to)) return JSON.stringify(from) === JSON.stringify(to) ? undefined : to;
  const patch: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(to)) {
    if (value === undefined) continue;
    const change = createMergePatch(from[key], value);
    if (change !== undefined) patch[key] = change;
  }
  for (const key of Object.keys(from)) if (to[key] === undefined && from[key] !== undefined) patch[key] = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** RFC 7386, into a new value. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  // `__proto__` is a name like any other.
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, applyMergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

/** As Go's encoding/json: these fields match in any case, the last one counts. It throws SyntaxError, RangeError. */
export function goJsonParser(fields: readonly string[]): (text: string) => unknown {
  const names = new Map(fields.map((field) => [field.toLowerCase(), field]));
  return (text) =>
    JSON.parse(text, (_key, value: unknown) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
      const entries = Object.entries(value).map(([key, inner]) => [names.get(key.toLowerCase()) ?? key, inner]);
      return Object.fromEntries(entries) as unknown;
    });
}
