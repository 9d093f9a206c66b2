import * as z from 'zod';
import { leaves } from './as-it-is.ts';

/**
 * A map of an API object: labels, annotations, amounts; `null` as Go writes it is none. These are most of what is
 * checked of an object, so it is done in one loop and the map stays as it came: the library's own records run two
 * schemas for each entry and copy it, which is half the time of reading a launcher.
 *
 * @param read the value as it is kept, or undefined if it is of another kind
 */
function mapOf(read: (value: unknown) => string | undefined) {
  const readMap = (input: unknown, { issues }: z.core.ParsePayload): Record<string, string> | undefined => {
    if (input === null || input === undefined) return undefined;
    if (typeof input !== 'object' || Array.isArray(input)) {
      issues.push({ code: 'invalid_type', expected: 'record', input });
      return z.NEVER;
    }
    const map = input as Record<string, unknown>;
    const changed: Record<string, string> = {};
    let changes = 0;
    for (const key in map) {
      const value = read(map[key]);
      if (value === map[key]) continue;
      if (value === undefined) issues.push({ code: 'invalid_type', expected: 'string', input: map[key], path: [key] });
      else changed[key] = value;
      changes++;
    }
    return (changes === 0 ? map : { ...map, ...changed }) as Record<string, string>;
  };
  return z.unknown().transform(leaves(readMap, isTextMap)).optional();
}

function isTextMap(value: unknown): boolean {
  if (value === undefined) return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  for (const key in value) if (typeof (value as Record<string, unknown>)[key] !== 'string') return false;
  return true;
}

export const textMap = mapOf((value) => (typeof value === 'string' ? value : undefined));

/** JSON allows a bare number where Kubernetes documents a quantity; the API server normalises it to a string. */
export const resourceList = mapOf((value) => {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? value : undefined;
});
