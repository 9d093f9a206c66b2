import * as z from 'zod';
import { leaves } from './as-it-is.ts';

/**
 * A schema of string maps in API objects: labels, annotations, amounts. `null`, as Go clients write it, counts as
 * absent. These maps are most of an object. One loop checks them and keeps the map as it is; Zod's records run two
 * schemas for each entry and copy the map, which takes half the time of reading a launcher.
 *
 * @param read returns the value to keep, or undefined if it has the wrong type
 */
function mapOf(read: (value: unknown) => string | undefined) {
  const readMap = (input: unknown, { issues }: z.core.ParsePayload): Record<string, string> | undefined => {
    if (input === null || input === undefined) return undefined;
    if (typeof input !== 'object' || Array.isArray(input)) {
      issues.push({ code: 'invalid_type', expected: 'record', input });
      return undefined;
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
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  for (const key in value) if (typeof (value as Record<string, unknown>)[key] !== 'string') return false;
  return true;
}

export const textMap = mapOf((value) => (typeof value === 'string' ? value : undefined));

/** JSON allows a bare number where Kubernetes documents a quantity; the API server converts it to a string. */
export const resourceList = mapOf((value) => {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? value : undefined;
});
