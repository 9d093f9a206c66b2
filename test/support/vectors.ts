import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of test/vectors, parsed each time, so that a test may change it. */
export function vector<T = unknown>(name: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../vectors', name), 'utf8')) as T;
}
