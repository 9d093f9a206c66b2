/**
 * Values in OVSDB's notation: an atom (text, number, boolean, or a pair of "uuid" and an id), a set (`["set", […]]`; a
 * single element may stand alone) or a map (`["map", [[key, value], …]]`). An absent column has its default: the empty
 * set or map, or the empty text.
 *
 * Source: RFC 7047, section 5.1.
 */

/** The elements of a set, ids of rows as plain text. */
export function setOf(value: unknown): readonly (string | number | boolean)[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return [atom(value)];
  const [tag, content] = value as [unknown, unknown];
  if (tag === 'set') return Array.isArray(content) ? content.map(atom) : [];
  return tag === 'uuid' ? [String(content)] : [];
}

/** A map from text to text; all maps read here have this type. */
export function mapOf(value: unknown): ReadonlyMap<string, string> {
  if (!Array.isArray(value) || value[0] !== 'map' || !Array.isArray(value[1])) return new Map();
  return new Map((value[1] as unknown[]).filter(isPair).map(([key, one]) => [String(key), String(one)]));
}

/** The text, or the only text of a set of at most one; '' for an empty set. */
export function textOf(value: unknown): string {
  const [first] = setOf(value);
  return first === undefined ? '' : String(first);
}

function atom(value: unknown): string | number | boolean {
  if (Array.isArray(value)) return String(value[1]);
  return typeof value === 'number' || typeof value === 'boolean' ? value : String(value);
}

function isPair(value: unknown): value is [unknown, unknown] {
  return Array.isArray(value) && value.length === 2;
}
