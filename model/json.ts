export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a decoded value is an object, and neither a list nor null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The decoded value; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  return resultOrNone(() => JSON.parse(text));
}

/** The result of a function; undefined if it throws. */
export function resultOrNone<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
