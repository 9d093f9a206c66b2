/**
 * Returns a parser of JSON for these fields that reads it as Go's encoding/json: the name of a field matches in any case
 * (`vlanId` is `vlanID`), and the last one counts. The parser throws SyntaxError, and RangeError for very deep nesting.
 */
export function goJsonParser(fields: readonly string[]): (text: string) => unknown {
  const names = new Map(fields.map((field) => [field.toLowerCase(), field]));
  return (text) =>
    JSON.parse(text, (_key, value: unknown) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
      const entries = Object.entries(value).map(([key, inner]) => [names.get(key.toLowerCase()) ?? key, inner]);
      return Object.fromEntries(entries) as unknown;
    });
}
