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
